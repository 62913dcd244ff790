"""The first writes to new cgroups, on a model of the kernel and against its laws."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.tree import Version, contains
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.desired import Rules
from numapin_enforcer.plan.new_cgroups import NewCgroupFence
from numapin_enforcer.plan.writes.ordered import plan
from support.fakes.worlds.reconciler_world import EXCLUSIVE, NAMES, OTHER, A, C, own
from support.fakes.worlds.reconciler_world import World as SmallWorld
from support.values.kernel.laws import Watch, assert_reached
from support.values.kernel.passes import enforce, holders, in_force, patient
from support.values.kernel.worlds import World, born, worlds
from support.values.specs_and_trees import spec

SPEC = spec(own("exclusive", "4-7"))
NEW_POD = "kubepods/podnew"


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def world(request: pytest.FixtureRequest) -> SmallWorld:
    made = SmallWorld(request.param)
    assert made.run(SPEC).complete
    return made


def test_a_new_pod_leaves_exclusive_cpus_at_once(world: SmallWorld) -> None:
    world.make(NEW_POD)
    assert world.cpus(NEW_POD) == "0-7"
    world.model.reads = 0
    world.reconciler.first_writes.fence_new(Changes((NEW_POD,)), NAMES)
    assert (world.cpus(NEW_POD), world.model.reads) == ("0-3", 0)
    done = world.run(SPEC)
    assert (done.complete, done.drifts) == (True, ())


def test_a_new_container_beside_an_exclusive_one_leaves_its_cpus_at_once(world: SmallWorld) -> None:
    sidecar = f"{EXCLUSIVE}/{C}"
    world.make(sidecar)
    world.reconciler.first_writes.fence_new(Changes((sidecar,)), {**NAMES, C: "sidecar"})
    assert world.cpus(sidecar) == "0-3"


def test_a_pod_and_its_container_that_appear_together_are_fenced_together(
    world: SmallWorld,
) -> None:
    """On v1 they have no set yet, on v2 that of kubepods."""
    paths = [NEW_POD, f"{NEW_POD}/{C}"]
    for path in paths:
        world.model.make(path)
    world.reconciler.first_writes.fence_new(Changes(tuple(paths)), NAMES)
    assert world.cpus(NEW_POD) == "0-3"
    assert world.cpus(paths[1]) in ("", "0-3")


def test_a_new_cgroup_that_starts_in_the_pool_is_not_written(world: SmallWorld) -> None:
    world.make(f"{OTHER}/{C}")
    writes: list[object] = []
    world.model.after_write = writes.append
    world.reconciler.first_writes.fence_new(Changes((f"{OTHER}/{C}",)), NAMES)
    assert writes == []


def test_a_container_that_the_spec_lists_is_left_to_the_plan(world: SmallWorld) -> None:
    given_spec = spec(own("exclusive", "4-7"), own("new", "3"), shared="0-2")
    assert world.run(given_spec).complete
    world.make(NEW_POD)
    assert world.run(given_spec).complete
    world.make(f"{NEW_POD}/{C}")
    world.reconciler.first_writes.fence_new(Changes((f"{NEW_POD}/{C}",)), {**NAMES, C: "main"})
    assert world.cpus(f"{NEW_POD}/{C}") == "0-3"


def refuse_besteffort(write: Write) -> None:
    if write.path.startswith("kubepods/besteffort"):
        raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")


def test_a_new_pod_is_fenced_also_while_another_pods_cgroup_cannot_be_set(
    world: SmallWorld,
) -> None:
    """A tenant can keep one cgroup of its own from being set for as long as it likes."""
    world.model.before_write = refuse_besteffort
    assert not world.run(spec(own("exclusive", "3"), shared="0-2")).complete
    sidecar = f"{EXCLUSIVE}/{C}"
    for path in (NEW_POD, sidecar):
        world.make(path)
    before = world.cpus(sidecar)
    assert not world.reconciler.first_writes.fence_new(Changes((NEW_POD, sidecar)), NAMES)
    assert world.cpus(NEW_POD) == "0-2"
    assert world.cpus(sidecar) == before  # the pass decides


def test_a_new_pod_is_not_put_on_cpus_that_an_exclusive_container_is_to_leave(
    world: SmallWorld,
) -> None:
    def refuse(write: Write) -> None:
        if write.path.startswith(EXCLUSIVE):
            raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")

    world.model.before_write = refuse
    assert not world.run(spec(own("exclusive", "2-3"), shared="0-1,4-7")).complete
    assert world.cpus(f"{EXCLUSIVE}/{A}") == "4-7"
    world.make(NEW_POD)
    world.reconciler.first_writes.fence_pods([NEW_POD])
    assert world.cpus(NEW_POD) == "0-1"


def test_a_new_pod_is_fenced_again_until_it_has_a_container(world: SmallWorld) -> None:
    """Also after the pass that found it: what sets it up may be slower than that."""
    first_writes = world.reconciler.first_writes
    world.make(NEW_POD)
    assert [write.path for write in first_writes.fence_pods([NEW_POD])] == [NEW_POD]
    for _ in range(2):
        world.overwrite(NEW_POD, "0-7")
        assert len(first_writes.fence_pods([NEW_POD])) == 1
        assert first_writes.fence_pods([NEW_POD]) == []
        assert world.cpus(NEW_POD) == "0-3"
        assert world.run(SPEC).complete
    world.start(f"{NEW_POD}/{C}")
    assert world.run(SPEC).complete
    world.overwrite(NEW_POD, "0-7")
    assert first_writes.fence_pods([NEW_POD]) == []  # an external change, which a pass counts
    assert len(world.run(SPEC).drifts) == 1


def test_pods_are_fenced_among_the_writes_of_a_pass(world: SmallWorld) -> None:
    """On no CPU that is exclusive to a container before them, and on none that one gets."""
    first_writes, writes = world.reconciler.first_writes, list[Write]()

    def between() -> None:
        if len(writes) == 2:
            world.make(NEW_POD)
            assert [one.path for one in first_writes.fence_pods([NEW_POD])] == [NEW_POD]
            fenced.append(world.cpus(NEW_POD))

    fenced: list[str] = []
    world.model.after_write = writes.append
    world.reconciler.between = between
    assert world.run(spec(own("exclusive", "2-3"), shared="0-1,4-7")).complete
    assert fenced == ["0-1"]
    assert world.cpus(NEW_POD) == "0-1,4-7"


def test_a_runtime_that_writes_after_the_fence_is_fenced_again(world: SmallWorld) -> None:
    world.make(NEW_POD)
    assert world.reconciler.first_writes.fence_new(Changes((NEW_POD,)), NAMES)
    writes: list[object] = []
    world.model.after_write = writes.append
    both = Changes((NEW_POD,), written=(NEW_POD,))
    assert world.reconciler.first_writes.fence_new(both, NAMES)
    assert writes == []  # the event was that of the fence's own write
    world.model.write(Write(NEW_POD, CpuSet(range(8)), Step.PREPARE))
    writes.clear()
    assert world.reconciler.first_writes.fence_new(both, NAMES)
    assert (world.cpus(NEW_POD), len(writes)) == ("0-3", 1)


def test_only_new_cgroups_that_were_fenced_may_wait_for_their_pass(world: SmallWorld) -> None:
    world.make(NEW_POD)
    for changes in (
        Changes((NEW_POD,), written=(EXCLUSIVE,)),
        Changes((NEW_POD,), vanished=(OTHER,)),
        Changes((NEW_POD,), overflowed=True),
        Changes((NEW_POD, f"{EXCLUSIVE}/{C}/nested")),
    ):
        assert not world.reconciler.first_writes.fence_new(changes, NAMES)


def test_a_new_cgroup_that_cannot_be_fenced_does_not_wait(world: SmallWorld) -> None:
    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")

    world.make(NEW_POD)
    world.model.before_write = refuse
    assert not world.reconciler.first_writes.fence_new(Changes((NEW_POD,)), NAMES)


@patient
@given(world=worlds(), data=st.data())
def test_no_law_is_broken_by_the_first_writes(world: World, data: st.DataObject) -> None:
    model, given_spec = in_force(data, world)
    new = _remove_some(data, world, model)
    enforce(world, model, given_spec)
    tree = model.read()
    if plan(tree, world.desired(given_spec, tree)).writes:
        return
    names, held = world.names(), holders(world, model, given_spec)
    is_late = data.draw(st.booleans(), label="a name comes late")
    if names and is_late:
        names.pop(data.draw(st.sampled_from(sorted(names)), label="whose"))
    watch = Watch(world, model, held)
    rules = Rules(given_spec, world.naming, world.topology)
    fence = NewCgroupFence(rules, world.naming, tree)
    for path in new:
        born(model, path)
        watch.unseen.add(path)  # with its pod's CPUs, until it is written or planned for
        for write in fence.writes([path], names):
            watch.unseen.discard(path)
            model.write(write)
        assert_fenced(world, model, path, held)
    model.before_write = model.after_write = lambda _: None
    for _ in range(2):
        enforce(world, model, given_spec)
    assert_reached(world, given_spec, model.read())


def assert_fenced(world: World, model: KernelModel, path: str, held: dict[str, CpuSet]) -> None:
    """A new cgroup has no CPU that a container of another pod has to itself."""
    found, uid = model.read().cgroups[path].effective_cpus, world.naming.parse(path).pod_uid
    others = [cpus for one, cpus in held.items() if world.naming.parse(one).pod_uid != uid]
    assert found.isdisjoint(CpuSet.union(others)), path


def _remove_some(data: st.DataObject, world: World, model: KernelModel) -> list[str]:
    """Some pods, and containers of others, are still to come; parents first."""
    of_pods = [path for path in world.paths() if world.naming.parse(path).pod_uid]
    chosen = data.draw(st.lists(st.sampled_from(of_pods), max_size=4), label="new")
    new = [path for path in of_pods if any(contains(one, path) for one in chosen)]
    for path in new:
        model.groups.pop(path, None)
    return new
