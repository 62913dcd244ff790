"""An administrator gives kubepods a part of the machine (cgroup v2): no plan takes it back."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.hardware.part import Withheld, part_of
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.passes import enforce, in_force, patient
from support.values.kernel.worlds import World, specs, worlds


def restricted(data: st.DataObject, world: World, model: KernelModel) -> Topology:
    """Let kubepods have some of the machine alone; returns that part as the enforcer sees it."""
    cpus = CpuSet(data.draw(st.sets(st.sampled_from(sorted(world.topology.online)), min_size=1)))
    mems = MemSet(data.draw(st.sets(st.sampled_from(sorted(world.topology.mems)), min_size=1)))
    top = model.groups[model.root]
    top.cpus, top.mems = cpus, mems
    gone = Withheld(world.topology.online - cpus, world.topology.mems - mems)
    return part_of(world.topology, gone)


def settles_beside(world: World, model: KernelModel, spec: NodeAssignmentSpec) -> None:
    """Passes do not write to kubepods, come to an end, and no write is refused."""
    given = (model.groups[model.root].cpus, model.groups[model.root].mems)
    for _ in range(3):
        assert not enforce(world, model, spec).failed
    top = model.groups[model.root]
    assert (top.cpus, top.mems) == given
    tree = model.read()
    assert plan(tree, world.desired(spec, tree)).writes == ()


@patient
@given(data=st.data(), world=worlds((Version.V2,)))
def test_a_spec_of_before_is_enforced_as_far_as_it_can(data: st.DataObject, world: World) -> None:
    """The enforcer has not seen the new part yet, or it has and the operator is away."""
    model, spec = in_force(data, world)
    part = restricted(data, world, model)
    settles_beside(world, model, spec)
    settles_beside(replace(world, topology=part), model, spec)


@patient
@given(data=st.data(), world=worlds((Version.V2,)))
def test_a_spec_for_the_part_is_in_force(data: st.DataObject, world: World) -> None:
    model, _ = in_force(data, world)
    planned = replace(world, topology=restricted(data, world, model))
    spec = data.draw(specs(planned))
    settles_beside(planned, model, spec)
    tree = model.read()
    wanted = planned.desired(spec, tree)
    assert all(one.effective_cpus == wanted[path].cpus for path, one in tree.cgroups.items())
    assert all(one.effective_mems == wanted[path].mems for path, one in tree.cgroups.items())
