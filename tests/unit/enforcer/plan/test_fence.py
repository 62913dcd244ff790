"""The fence while the enforcer is down: no pod gets exclusive CPUs of another."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.apply import Outcome, apply
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Step, Tree, Version, Write, parent
from numapin_enforcer.plan.fence import breached, fence
from numapin_enforcer.plan.writes import plan
from support.fakes.kernel import KernelModel
from support.values.kernel_laws import Watch, exclusive_containers
from support.values.kernel_passes import enforce, holders, in_force, patient, refuse
from support.values.kernel_worlds import (
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


def stand_in(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> Outcome:
    """One pass of a standby."""
    tree = model.read()
    return apply(plan(tree, fence(spec, tree, NAMING, world.topology)).quick, model)


def foreign(world: World, spec: NodeAssignmentSpec, path: str) -> CpuSet:
    """What is owned by pods that neither hold `path` nor are held by it."""
    found = CpuSet()
    for owner, cpus in exclusive_containers(world, spec).items():
        pod = owner.rpartition("/")[0]
        if not f"{path}/".startswith(f"{pod}/") and not pod.startswith(f"{path}/"):
            found |= cpus
    return found


def come_in(model: KernelModel, paths: list[str]) -> None:
    for path in paths:
        model.groups[parent(path)].tasks = 0  # v2 has tasks only where nothing is inside
        born(model, path)


def assert_nobody_is_on_anothers(world: World, spec: NodeAssignmentSpec, tree: Tree) -> None:
    for path, cgroup in tree.cgroups.items():
        if path != tree.root:
            assert cgroup.effective_cpus, path
            assert cgroup.effective_cpus.isdisjoint(foreign(world, spec, path)), path


@patient
@given(data=st.data(), world=worlds())
def test_from_any_tree_everybody_leaves_what_another_pod_owns(
    data: st.DataObject, world: World
) -> None:
    model, spec = data.draw(scattered(world)), data.draw(specs(world))
    Watch(world, model, holders(world, model, spec))
    assert stand_in(world, model, spec).complete
    tree = model.read()
    assert_nobody_is_on_anothers(world, spec, tree)
    wanted = fence(spec, tree, NAMING, world.topology)
    assert not breached(tree, wanted)
    assert plan(tree, wanted).quick == ()


@patient
@given(data=st.data(), world=worlds())
def test_what_an_enforcer_left_stays_as_it_is(data: st.DataObject, world: World) -> None:
    model, spec = in_force(data, world)
    before = model.read()
    assert not breached(before, fence(spec, before, NAMING, world.topology))


@patient
@given(data=st.data(), world=worlds())
def test_newcomers_are_fenced_and_nobody_else_is_touched(data: st.DataObject, world: World) -> None:
    model, spec = in_force(data, world)
    before = model.read()
    watch = Watch(world, model, holders(world, model, spec))
    come = data.draw(pods("pod-9", NAMING), label="who comes").paths()
    come_in(model, come)
    watch.unseen = set(come)
    assert stand_in(world, model, spec).complete
    after = model.read()
    assert_nobody_is_on_anothers(world, spec, after)
    for path, cgroup in before.cgroups.items():
        assert after.cgroups[path].effective_cpus == cgroup.effective_cpus, path


@patient
@given(data=st.data(), world=worlds(), place=st.integers(0, 8))
def test_what_is_refused_leaves_owners_alone_and_is_done_the_next_time(
    data: st.DataObject, world: World, place: int
) -> None:
    model, spec = in_force(data, world)
    watch = Watch(world, model, holders(world, model, spec))
    come = data.draw(pods("pod-9", NAMING), label="who comes").paths()
    come_in(model, come)
    watch.unseen = set(come)
    model.before_write = refuse({place}, errno.EBUSY, watch.before)
    stand_in(world, model, spec)
    model.before_write = watch.before
    assert stand_in(world, model, spec).complete
    assert_nobody_is_on_anothers(world, spec, model.read())


def owned(version: Version) -> tuple[World, KernelModel, NodeAssignmentSpec]:
    """A container owns CPUs 4-5 and stands on them, beside its sandbox; all else share 0-3."""
    world = World(version, EIGHT, CpuSet(range(8)), (POD,))
    owner = assigned(POD, "container-a", CpuSet([4, 5]), MemSet())
    pools = Pools(reserved=CpuSet([0]), shared=CpuSet([0, 1, 2, 3]))
    spec = NodeAssignmentSpec(pools=pools, containers=(owner,))
    model = world.model()
    assert enforce(world, model, spec).complete
    return world, model, spec


def cpus_of(model: KernelModel, path: str) -> str:
    return str(model.read().cgroups[path].effective_cpus)


@pytest.mark.parametrize("version", Version)
def test_a_sidecar_that_is_born_meanwhile_does_not_join_the_owner_of_its_pod(
    version: Version,
) -> None:
    world, model, spec = owned(version)
    born(model, SIDECAR)
    assert cpus_of(model, SIDECAR) == "0-5"
    assert stand_in(world, model, spec).complete
    assert cpus_of(model, SIDECAR) == "0-3"
    assert cpus_of(model, POD.container_path("container-a")) == "4-5"


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(
    ("found", "left"), [("0-4", "0-4"), ("3", "3"), ("4", "4"), ("4-5", "4-5")]
)
def test_who_was_set_by_somebody_keeps_what_its_own_pod_has(
    version: Version, found: str, left: str
) -> None:
    """It may be the owner, which others have moved."""
    world, model, spec = owned(version)
    owner = POD.container_path("container-a")
    model.write(Write(owner, CpuSet.parse(found), Step.WIDEN))
    assert stand_in(world, model, spec).complete
    assert cpus_of(model, owner) == left


@pytest.mark.parametrize("version", Version)
def test_a_class_that_was_opened_is_closed_again(version: Version) -> None:
    world, model, spec = owned(version)
    model.write(Write("kubepods/besteffort", CpuSet(range(8)), Step.WIDEN))
    assert stand_in(world, model, spec).complete
    assert cpus_of(model, "kubepods/besteffort") == "0-3"
