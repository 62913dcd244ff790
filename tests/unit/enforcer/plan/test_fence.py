"""While no enforcer runs: exclusive CPUs stay exclusive, and their containers keep them."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.apply import Outcome, apply
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Tree, Version, parent
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.fence import breached, fence, fence_new
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.laws import Watch, exclusive_containers, pool_of
from support.values.kernel.passes import enforce, holders, in_force, patient, refuse
from support.values.kernel.worlds import (
    NAMING,
    Pod,
    World,
    assigned,
    born,
    pods,
    scattered,
    specs,
    worlds,
)

EIGHT = Topology(tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(8)), (NumaNode(0, 2**30),))
POD = Pod("1", Qos.GUARANTEED, ("container-a",), frozenset(), stranger=False)
SIDECAR = POD.container_path("container-b")


def standby_pass(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> Outcome:
    """One pass of a standby."""
    tree = model.read()
    return apply(plan(tree, fence(spec, tree, NAMING, world.topology)).quick, model)


def exclusive_of_others(world: World, spec: NodeAssignmentSpec, path: str) -> CpuSet:
    """The exclusive CPUs of pods that are neither ancestors nor descendants of `path`."""
    found = CpuSet()
    for exclusive, cpus in exclusive_containers(world, spec).items():
        pod = exclusive.rpartition("/")[0]
        if not f"{path}/".startswith(f"{pod}/") and not pod.startswith(f"{path}/"):
            found |= cpus
    return found


def create(model: KernelModel, paths: list[str]) -> None:
    for path in paths:
        model.groups[parent(path)].tasks = 0  # on v2 only leaves have tasks
        born(model, path)


def assert_exclusive_cpus_are_not_shared(
    world: World, spec: NodeAssignmentSpec, tree: Tree
) -> None:
    for path, cgroup in tree.cgroups.items():
        if path != tree.root:
            assert cgroup.effective_cpus, path
            assert cgroup.effective_cpus.isdisjoint(exclusive_of_others(world, spec, path)), path


@patient
@given(data=st.data(), world=worlds())
def test_from_any_tree_every_cgroup_leaves_the_exclusive_cpus_of_other_pods(
    data: st.DataObject, world: World
) -> None:
    """A container found on CPUs of the shared pool is not moved, and shares them."""
    model, spec = data.draw(scattered(world)), data.draw(specs(world))
    pool = pool_of(world, spec)
    held = {path: cpus - pool for path, cpus in holders(world, model, spec).items()}
    Watch(world, model, held)
    assert standby_pass(world, model, spec).complete
    tree = model.read()
    assert_exclusive_cpus_are_not_shared(world, spec, tree)
    wanted = fence(spec, tree, NAMING, world.topology)
    assert not breached(tree, wanted)
    assert plan(tree, wanted).quick == ()


@patient
@given(data=st.data(), world=worlds())
def test_a_tree_that_an_enforcer_left_is_not_changed(data: st.DataObject, world: World) -> None:
    model, spec = in_force(data, world)
    before = model.read()
    assert not breached(before, fence(spec, before, NAMING, world.topology))


@patient
@given(data=st.data(), world=worlds())
def test_new_cgroups_are_fenced_and_no_other_is_changed(data: st.DataObject, world: World) -> None:
    model, spec = in_force(data, world)
    before = model.read()
    watch = Watch(world, model, holders(world, model, spec))
    new = data.draw(pods("pod-9", NAMING), label="new pod").paths()
    create(model, new)
    watch.unseen = set(new)
    assert standby_pass(world, model, spec).complete
    after = model.read()
    assert_exclusive_cpus_are_not_shared(world, spec, after)
    for path, cgroup in before.cgroups.items():
        assert after.cgroups[path].effective_cpus == cgroup.effective_cpus, path


@patient
@given(data=st.data(), world=worlds(), index=st.integers(0, 8))
def test_after_a_refused_write_exclusive_cpus_stay_so_and_the_next_pass_completes(
    data: st.DataObject, world: World, index: int
) -> None:
    model, spec = in_force(data, world)
    watch = Watch(world, model, holders(world, model, spec))
    new = data.draw(pods("pod-9", NAMING), label="new pod").paths()
    create(model, new)
    watch.unseen = set(new)
    model.before_write = refuse({index}, errno.EBUSY, watch.before)
    standby_pass(world, model, spec)
    model.before_write = watch.before
    assert standby_pass(world, model, spec).complete
    assert_exclusive_cpus_are_not_shared(world, spec, model.read())


def one_exclusive(version: Version) -> tuple[World, KernelModel, NodeAssignmentSpec]:
    """A container has CPUs 4-5 exclusively, beside its sandbox; all others share 0-3."""
    world = World(version, EIGHT, CpuSet(range(8)), (POD,))
    exclusive = assigned(POD, "container-a", CpuSet([4, 5]), MemSet())
    pools = Pools(reserved=CpuSet([0]), shared=CpuSet([0, 1, 2, 3]))
    spec = NodeAssignmentSpec(pools=pools, containers=(exclusive,))
    model = world.model()
    assert enforce(world, model, spec).complete
    return world, model, spec


def cpus_of(model: KernelModel, path: str) -> str:
    return str(model.read().cgroups[path].effective_cpus)


@pytest.mark.parametrize("version", Version)
def test_a_sidecar_created_meanwhile_does_not_share_the_exclusive_cpus_of_its_pod(
    version: Version,
) -> None:
    world, model, spec = one_exclusive(version)
    born(model, SIDECAR)
    assert cpus_of(model, SIDECAR) == "0-5"
    assert standby_pass(world, model, spec).complete
    assert cpus_of(model, SIDECAR) == "0-3"
    assert cpus_of(model, POD.container_path("container-a")) == "4-5"


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(
    ("found", "left"), [("0-4", "0-4"), ("3", "3"), ("4", "4"), ("4-5", "4-5")]
)
def test_a_cgroup_that_was_set_keeps_the_cpus_of_its_own_pod(
    version: Version, found: str, left: str
) -> None:
    """It may be the exclusive container, moved by an external change."""
    world, model, spec = one_exclusive(version)
    exclusive = POD.container_path("container-a")
    model.write(Write(exclusive, CpuSet.parse(found), Step.WIDEN))
    assert standby_pass(world, model, spec).complete
    assert cpus_of(model, exclusive) == left


@pytest.mark.parametrize("version", Version)
def test_a_class_that_was_widened_is_narrowed_again(version: Version) -> None:
    world, model, spec = one_exclusive(version)
    model.write(Write("kubepods/besteffort", CpuSet(range(8)), Step.WIDEN))
    assert standby_pass(world, model, spec).complete
    assert cpus_of(model, "kubepods/besteffort") == "0-3"


@pytest.mark.parametrize("version", Version)
def test_while_the_enforcer_hangs_only_new_cgroups_lose_cpus(version: Version) -> None:
    """The enforcer may have set newer sets than the saved spec has; those stay."""
    model = KernelModel(version, EIGHT.online, MemSet((0,)), root="kubepods")
    saved = NodeAssignmentSpec(
        pools=Pools(reserved=CpuSet((0,)), shared=CpuSet(range(6))),
        containers=(assigned(POD, "container-a", CpuSet((6, 7)), MemSet()),),
    )
    newer, fresh = "kubepods/podnewer", "kubepods/podfresh"
    for path in ("kubepods/burstable", newer, fresh):
        born(model, path)
    model.write(Write(newer, CpuSet((0, 6)), Step.GRANT))
    model.write(Write("kubepods/burstable", CpuSet((0, 7)), Step.WIDEN))
    tree = model.read()
    outcome = apply(plan(tree, fence_new(saved, tree, NAMING, EIGHT)).quick, model)
    assert {write.path for write in outcome.made} == {fresh}
    found = {path: str(one.effective_cpus) for path, one in model.read().cgroups.items()}
    assert found == {
        "kubepods": "0-7",
        "kubepods/burstable": "0,7",
        newer: "0,6",
        fresh: "0-5",
    }
