"""Whole plans on this machine's kernel: from any tree to any spec, safe after every write."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.desired import release
from numapin_enforcer.plan.writes.ordered import plan
from support.real.cgroups import RealCgroups, examples, memory_nodes, online_cpus
from support.values.kernel.laws import (
    Watch,
    assert_mems_stayed,
    assert_reached,
    held_now,
)
from support.values.kernel.worlds import followers, scattered, specs, worlds_on


@pytest.fixture(scope="module")
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


def this_machine() -> Topology:
    """As far as specs are drawn from it: which CPUs and which NUMA nodes with memory."""
    nodes = tuple(NumaNode(node, 2**30) for node in memory_nodes())
    return Topology(tuple(Cpu(cpu, cpu, 0, 0, nodes[0].id) for cpu in online_cpus()), nodes)


def build(real: RealCgroups, model: KernelModel) -> None:
    """The model's tree in the kernel, with a process wherever the model has a task."""
    real.clear()
    for path, group in sorted(model.groups.items()):
        if path != real.root:
            real.make(path)
        for value in (group.cpus, group.mems):
            if value and (path != real.root or real.version is Version.V2):
                real.write(Write(path, value, Step.PREPARE))
    for path, group in model.groups.items():
        if group.tasks:
            real.enter(path)


@settings(
    max_examples=examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_the_kernel_accepts_every_write_and_ends_as_desired(
    real: RealCgroups, data: st.DataObject
) -> None:
    world = data.draw(worlds_on(real.version, this_machine(), real.naming))
    build(real, data.draw(scattered(world)))
    spec = data.draw(specs(world))
    for _ in range(data.draw(st.integers(1, 3))):
        tree = real.read()
        watched = Watch(world, real, held_now(world, spec, tree))
        outcome = apply(plan(tree, world.desired(spec, tree)).writes, watched)
        assert outcome.complete, outcome
        assert_reached(world, spec, real.read())
        assert_mems_stayed(world, spec, tree, real.read())
        spec = data.draw(followers(world, spec))
    before = real.read()
    apply(plan(before, release(before, world.topology)).writes, real)
    for path, cgroup in real.read().cgroups.items():
        assert cgroup.effective_cpus == online_cpus()
        assert cgroup.effective_mems == before.cgroups[path].effective_mems
