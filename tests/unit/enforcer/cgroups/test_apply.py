"""A write fails during a swap: exclusive CPUs stay exclusive until their container left them."""

import errno
from collections.abc import Callable

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.errors import error_of
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.laws import Watch, assert_reached, held_now
from support.values.kernel.passes import copy_of, enforce
from support.values.kernel.worlds import NAMING, Pod, World, assigned

ONE_NODE = MemSet([0])
CPUS = tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(5))
PODS = tuple(
    Pod(f"pod-{number}", Qos.GUARANTEED, ("container-a", "container-b"), frozenset(), False)
    for number in range(2)
)


def world(version: Version) -> World:
    return World(version, Topology(CPUS, (NumaNode(0, 2**30),)), CpuSet(range(5)), PODS, NAMING)


def exclusive_spec(world: World, shared: int, *cpus: int) -> NodeAssignmentSpec:
    """Each of the four containers has one exclusive CPU, in their order."""
    pairs = zip(world.containers(), cpus, strict=True)
    listed = (assigned(pod, name, CpuSet([cpu]), ONE_NODE) for (pod, name), cpu in pairs)
    pool = CpuSet([shared])
    return NodeAssignmentSpec(pools=Pools(reserved=pool, shared=pool), containers=tuple(listed))


def failing(index: int, number: int, then: Callable[[Write], None]) -> Callable[[Write], None]:
    writes: list[Write] = []

    def before(write: Write) -> None:
        then(write)
        writes.append(write)
        if len(writes) == index + 1:
            raise error_of(write.path, str(write.value), OSError(number, "injected"))

    return before


def one_exclusive_spec(shared: str, own: str) -> NodeAssignmentSpec:
    """The first container has exclusive CPUs, the other the shared pool."""
    pool = CpuSet.parse(shared)
    one = assigned(PODS[0], "container-a", CpuSet.parse(own), ONE_NODE)
    return NodeAssignmentSpec(pools=Pools(reserved=pool, shared=pool), containers=(one,))


@pytest.mark.parametrize("version", Version)
def test_a_child_that_could_not_gain_does_not_inherit_an_exclusive_cpu(version: Version) -> None:
    """The pool moves from CPU 2 to CPU 0, and the write that gives CPU 0 to a container fails.

    Its pod must then keep CPU 2: without it, the container would inherit all that the pod has.
    """
    pod = Pod("pod-0", Qos.GUARANTEED, ("container-a", "container-b"), frozenset("b"), False)
    one = World(version, Topology(CPUS, (NumaNode(0, 2**30),)), CpuSet(range(5)), (pod,), NAMING)
    model = one.model()
    side = pod.container_path("container-b")
    model.make(f"{side}/inner")
    enforce(one, model, one_exclusive_spec("2", "1"))
    after = one_exclusive_spec("0", "1")
    watch = Watch(one, model, held_now(one, after, model.read()))
    paths = [write.path for write in plan(model.read(), one.desired(after, model.read())).writes]
    model.before_write = failing(paths.index(side), errno.ENOMEM, watch.before)
    assert not enforce(one, model, after).complete
    assert model.read().cgroups[side].effective_cpus == CpuSet([2])
    model.before_write = watch.before
    assert enforce(one, model, after).complete
    assert_reached(one, after, model.read())


@pytest.mark.parametrize("version", Version)
def test_while_a_pod_keeps_the_cpu_of_its_container_no_other_pod_gets_it(
    version: Version,
) -> None:
    """Two containers of two classes swap their CPUs, one of them with nested cgroups.

    On v2 it leaves its CPU by its pod's write. If that fails, the other class must not get the CPU.
    """
    pods = (
        Pod("pod-0", Qos.BURSTABLE, ("container-a",), frozenset(), False),
        Pod("pod-1", Qos.GUARANTEED, ("container-a",), frozenset({"container-a"}), False),
    )
    machine = Topology(CPUS, (NumaNode(0, 2**30),))
    one = World(version, machine, CpuSet(range(5)), pods, NAMING)
    start, before, after = one.model(), swapped(pods, 0, 1), swapped(pods, 1, 0)
    enforce(one, start, before)
    for index in range(len(plan(start.read(), one.desired(after, start.read())).writes)):
        model = copy_of(start)
        watch = Watch(one, model, held_now(one, after, model.read()))
        model.before_write = failing(index, errno.ENOMEM, watch.before)
        assert not enforce(one, model, after).complete
        model.before_write = watch.before
        assert enforce(one, model, after).complete


def swapped(pods: tuple[Pod, ...], *cpus: int) -> NodeAssignmentSpec:
    """The first container of each pod has one exclusive CPU; CPU 4 is shared."""
    pool = CpuSet([4])
    listed = [
        assigned(pod, "container-a", CpuSet([cpu]), ONE_NODE)
        for pod, cpu in zip(pods, cpus, strict=True)
    ]
    return NodeAssignmentSpec(pools=Pools(reserved=pool, shared=pool), containers=tuple(listed))


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("number", [errno.EBUSY, errno.EROFS], ids=["refused", "read-only"])
@pytest.mark.parametrize(
    ("shared", "cpus"),
    [(4, (3, 2, 1, 0)), (0, (2, 1, 4, 3)), (0, (3, 4, 1, 2)), (1, (2, 3, 4, 0)), (3, (0, 2, 1, 4))],
    ids=["all but one", "within pods", "between pods", "rotated", "with the pool"],
)
def test_a_swap_that_fails_at_any_write_is_safe_and_completes_later(
    version: Version, number: int, shared: int, cpus: tuple[int, ...]
) -> None:
    one = world(version)
    start, before, after = (
        one.model(),
        exclusive_spec(one, 0, 1, 2, 3, 4),
        exclusive_spec(one, shared, *cpus),
    )
    enforce(one, start, before)
    tree = start.read()
    for index in range(len(plan(tree, one.desired(after, tree)).writes)):
        model = copy_of(start)
        watch = Watch(one, model, held_now(one, after, tree))
        model.before_write = failing(index, number, watch.before)
        assert not enforce(one, model, after).complete
        model.before_write = watch.before
        watch.held |= held_now(one, after, model.read())
        assert enforce(one, model, after).complete
        assert_reached(one, after, model.read())
