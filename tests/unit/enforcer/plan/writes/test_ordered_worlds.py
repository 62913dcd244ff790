"""What the random worlds contain; without swaps and offline CPUs they would prove little."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Setting, Step, Write
from numapin_enforcer.plan.writes.ordered import plan
from support.values.kernel.laws import exclusive_containers
from support.values.kernel.passes import holders, patient, tree_after_a_spec, tree_of_others
from support.values.kernel.worlds import NAMING, World, worlds

OFTEN = 3
"""The least number of the 120 worlds that must contain each kind."""

SEEDS = (1, 2)

Origin = Callable[[st.DataObject, World], tuple[KernelModel, NodeAssignmentSpec]]
"""Draws a tree and the spec to enforce on it."""

HARD = {
    "an exclusive container that keeps no CPU",
    "a swap of exclusive CPUs",
    "a CPU offline",
    "a NUMA node without memory",
    "a NUMA node without CPUs",
    "an unknown cgroup",
    "a cgroup inside a container",
    *(
        f"{version} {kind}"
        for version in ("V1", "V2")
        for kind in ("interim CPUs", "a grant", "a widening", "a move of memory")
    ),
    "V1 a wider root",
    "V1 memory_migrate",
    "V2 a binding",
}


def kinds_of_world(world: World) -> Iterator[str]:
    topology = world.topology
    if topology.offline:
        yield "a CPU offline"
    if len(topology.mems) < len(topology.numa_nodes):
        yield "a NUMA node without memory"
    if len({cpu.numa_node for cpu in topology.cpus}) < len(topology.numa_nodes):
        yield "a NUMA node without CPUs"
    if world.strangers:
        yield "an unknown cgroup"
    if any(pod.nesting for pod in world.pods):
        yield "a cgroup inside a container"


def kinds_of_moves(before: dict[str, CpuSet], after: dict[str, CpuSet]) -> Iterator[str]:
    for path, had in before.items():
        if had.isdisjoint(after[path]):
            yield "an exclusive container that keeps no CPU"
        for other, theirs in before.items():
            if path != other and had & after[other] and theirs & after[path]:
                yield "a swap of exclusive CPUs"


def kinds_of_writes(writes: tuple[Write, ...]) -> Iterator[str]:
    for write in writes:
        if write.setting is Setting.MEMORY_MIGRATE:
            yield "memory_migrate"
        if write.setting is Setting.MEMS and write.leaves:
            yield "a move of memory"
        if write.setting is not Setting.CPUS:
            continue
        if not write.gains and not write.leaves:
            yield "a binding"
        if write.path == NAMING.root and write.gains:
            yield "a wider root"
        if write.step is Step.NARROW and write.exclusive_container and write.gains:
            yield "interim CPUs"
        if write.step in {Step.GRANT, Step.WIDEN}:
            yield f"a {'grant' if write.step is Step.GRANT else 'widening'}"


def test_the_random_worlds_contain_every_hard_kind() -> None:
    """As many worlds of each version and origin; by chance alone, a kind could be missing.

    Hypothesis varies earlier draws, so the worlds of one run resemble each other. Several runs
    with their own seeds make the counts steady.
    """
    met: Counter[str] = Counter()
    for version, origin, number in product(Version, (tree_after_a_spec, tree_of_others), SEEDS):
        count_kinds(met, version, origin, number)
    print(met)
    assert {kind for kind, count in met.items() if count >= OFTEN} >= HARD, met


def count_kinds(met: Counter[str], version: Version, origin: Origin, number: int) -> None:
    """Count the kinds of 15 worlds."""

    @seed(number)
    @settings(patient, max_examples=15, phases=[Phase.generate])
    @given(data=st.data(), world=worlds([version]))
    def look(data: st.DataObject, world: World) -> None:
        start, spec = origin(data, world)
        tree = start.read()
        before, after = holders(world, start, spec), exclusive_containers(world, spec)
        writes = plan(tree, world.desired(spec, tree)).writes
        met.update(set(kinds_of_world(world)) | set(kinds_of_moves(before, after)))
        met.update({f"{world.version.name} {kind}" for kind in kinds_of_writes(writes)})

    look()
