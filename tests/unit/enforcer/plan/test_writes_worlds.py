"""What the random worlds hold: without swaps, parks and CPUs offline they prove little."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import Setting, Step, Write
from numapin_enforcer.plan.writes import plan
from support.values.kernel_laws import owners
from support.values.kernel_passes import holders, patient, some_tree
from support.values.kernel_worlds import LAYOUT, World, worlds

OFTEN = 3
"""In so many of 100 worlds at least."""

HARD = {
    "an owner that keeps nothing",
    "a swap of owners",
    "a CPU offline",
    "a NUMA node without memory",
    "a NUMA node without CPUs",
    "an unknown cgroup",
    "a cgroup inside a container",
    *(
        f"{version} {kind}"
        for version in ("V1", "V2")
        for kind in ("a wider root", "a park", "a grant", "a widening", "a move of memory")
    ),
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


def kinds_of_owning(before: dict[str, CpuSet], after: dict[str, CpuSet]) -> Iterator[str]:
    for path, had in before.items():
        if had.isdisjoint(after[path]):
            yield "an owner that keeps nothing"
        for other, theirs in before.items():
            if path != other and had & after[other] and theirs & after[path]:
                yield "a swap of owners"


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
        if write.path == LAYOUT.root and write.gains:
            yield "a wider root"
        if write.step is Step.NARROW and write.owner and write.gains:
            yield "a park"
        if write.step in {Step.GRANT, Step.WIDEN}:
            yield f"a {'grant' if write.step is Step.GRANT else 'widening'}"


def test_the_random_worlds_hold_what_is_hard() -> None:
    met: Counter[str] = Counter()

    @settings(patient, max_examples=100)
    @given(data=st.data(), world=worlds())
    def look(data: st.DataObject, world: World) -> None:
        start, spec = some_tree(data, world)
        tree = start.read()
        before, after = holders(world, start, spec), owners(world, spec)
        writes = plan(tree, world.desired(spec, tree)).writes
        met.update(set(kinds_of_world(world)) | set(kinds_of_owning(before, after)))
        met.update({f"{world.version.name} {kind}" for kind in kinds_of_writes(writes)})

    look()
    assert {kind for kind, count in met.items() if count >= OFTEN} >= HARD, met
    print(met)
