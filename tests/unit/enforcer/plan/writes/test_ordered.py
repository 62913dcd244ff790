"""Which writes a plan makes, in which order; in small trees."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.writes.ordered import Plan, plan

BOTH = MemSet([0, 1])
ROOT, SHARED, ONE, TWO = "k", "k/shared", "k/one", "k/two"


def tree(version: Version, sets: Mapping[str, str], mems: Mapping[str, str] | None = None) -> Tree:
    """A tree in which every cgroup asked for exactly what it has."""
    cgroups = []
    for path, text in sets.items():
        cpus, nodes = CpuSet.parse(text), MemSet.parse((mems or {}).get(path, "0-1"))
        cgroups.append(Cgroup(path, cpus, nodes, cpus, nodes))
    return tree_of(version, ROOT, cgroups)


def want(cpus: str, exclusive: str = "", mems: str = "") -> Desired:
    nodes = MemSet.parse(mems)
    if not exclusive:
        return Desired(CpuSet.parse(cpus), nodes or BOTH)
    container = ContainerAssignment("1", "d", "p", exclusive, CpuSet.parse(cpus), nodes)
    return Desired(CpuSet.parse(cpus), nodes or BOTH, container, exclusive=True)


def lines(planned: Plan) -> list[str]:
    """Each write as `step path=set`."""
    return [f"{write.step} {write.path[2:]}={write.value}" for write in planned.writes]


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(
    ("found", "wanted", "writes"),
    [
        (
            {ROOT: "0-3", SHARED: "0-3", ONE: "0-3"},
            {ROOT: want("0-3"), SHARED: want("0-1"), ONE: want("2-3", "a")},
            ["Narrow shared=0-1", "Narrow one=2-3"],
        ),
        (
            {ROOT: "0-3", SHARED: "0-1", ONE: "2", TWO: "3"},
            {ROOT: want("0-3"), SHARED: want("0-1"), ONE: want("3", "a"), TWO: want("2", "b")},
            ["Narrow two=0-1", "Narrow one=0-1", "Grant two=2", "Grant one=3"],
        ),
        (
            {ROOT: "0-3", SHARED: "0", ONE: "1", TWO: "2"},
            {ROOT: want("0-3"), SHARED: want("0"), ONE: want("2", "a"), TWO: want("3", "b")},
            ["Narrow two=0", "Narrow one=0", "Grant two=3", "Grant one=2"],
        ),
        (
            {ROOT: "0-1", SHARED: "0", ONE: "1"},
            {ROOT: want("0-1"), SHARED: want("1"), ONE: want("0", "a")},
            ["Narrow one=0", "Narrow shared=1"],
        ),
        (
            {ROOT: "0-3", SHARED: "0-1", ONE: "2-3"},
            {ROOT: want("0-3"), SHARED: want("0-2"), ONE: want("3", "a")},
            ["Narrow one=3", "Widen shared=0-2"],
        ),
        (
            {ROOT: "0-3", SHARED: "0-1", ONE: "2-3"},
            {ROOT: want("0-3"), SHARED: want("0-1"), ONE: want("2-3", "a")},
            [],
        ),
    ],
    ids=["fence", "swap", "chain", "exclusive and shared swap", "shrink", "nothing to do"],
)
def test_exclusive_cpus_are_shared_with_no_other_cgroup(
    version: Version, found: dict[str, str], wanted: dict[str, Desired], writes: list[str]
) -> None:
    assert lines(plan(tree(version, found), wanted)) == writes


@pytest.mark.parametrize("version", Version)
def test_a_child_of_a_future_exclusive_container_gets_interim_cpus_with_it(
    version: Version,
) -> None:
    inside = f"{ONE}/in"
    found = {ROOT: "0-3", SHARED: "0-1", ONE: "2", inside: "2"}
    wanted = {SHARED: want("0,2"), ONE: want("1", "a"), inside: want("1", "a")}
    assert lines(plan(tree(version, found), {ROOT: want("0-3"), **wanted})) == [
        "Narrow shared=0",
        "Narrow one=0,2-3",
        "Narrow one/in=0,3",
        "Narrow one=0,3",
        "Grant one=0-1,3",
        "Grant one/in=1",
        "Grant one=1",
        "Widen shared=0,2",
    ]


@pytest.mark.parametrize("version", Version)
def test_a_child_keeps_the_interim_cpus_that_it_already_has(version: Version) -> None:
    inside = f"{ONE}/in"
    found = {ROOT: "0-3", SHARED: "0-1", ONE: "1-2", inside: "1"}
    wanted = {SHARED: want("0-2"), ONE: want("3", "a"), inside: want("3", "a")}
    assert lines(plan(tree(version, found), {ROOT: want("0-3"), **wanted})) == [
        "Narrow one=1",
        "Narrow one=0-2",
        "Grant one=0-3",
        "Grant one/in=3",
        "Grant one=3",
        "Widen shared=0-2",
    ]


@pytest.mark.parametrize("version", Version)
def test_a_child_on_a_cpu_that_its_container_loses_moves_to_one_that_it_keeps(
    version: Version,
) -> None:
    inside = f"{ONE}/in"
    found = {ROOT: "0-3", SHARED: "0-1", ONE: "2-3", inside: "3"}
    wanted = {SHARED: want("0-1"), ONE: want("2", "a"), inside: want("2", "a")}
    planned = plan(tree(version, found), {ROOT: want("0-3"), **wanted})
    assert lines(planned) == ["Narrow one/in=2", "Narrow one=2"]


@pytest.mark.parametrize("version", Version)
def test_without_free_cpus_interim_cpus_are_those_of_its_predecessor(version: Version) -> None:
    """All shared CPUs are still exclusive CPUs of other containers."""
    successor = "k/zero"
    found = {ROOT: "0-4", ONE: "2", TWO: "0", successor: "3"}
    wanted = {ONE: want("1-2", "a"), TWO: want("4", "b"), successor: want("1-2", "a")}
    assert lines(plan(tree(version, found), {ROOT: want("0-4"), **wanted})) == [
        "Narrow zero=1-2",
        "Narrow two=4",
        "Grant one=1-2",
    ]


def test_a_pod_without_kept_cpus_gets_exclusive_cpus_only_with_their_container() -> None:
    """A container created in the pod would otherwise share CPUs with the container that leaves."""
    created = f"{ONE}/new"
    found = {ROOT: "0-3", ONE: "1", created: "", TWO: "3"}
    wanted = {ONE: want("0,3"), created: want("3", "a"), TWO: want("2", "b")}
    assert lines(plan(tree(Version.V1, found), {ROOT: want("0-3"), **wanted})) == [
        "Narrow one=0-1",
        "Narrow two=0-1",
        "Narrow one=0",
        "Grant one=0,3",
        "Grant one/new=3",
        "Grant two=2",
    ]


def inheriting(count: int) -> tuple[Tree, dict[str, Desired]]:
    """A v2 QoS class of `count` containers that asked for no CPUs."""
    paths = [ROOT, SHARED, *(f"{SHARED}/{index}" for index in range(count)), ONE]
    everything = CpuSet(range(4))
    cgroups = (Cgroup(path, CpuSet(), MemSet(), everything, BOTH) for path in paths)
    wanted = {path: want("0-2") for path in paths}
    return tree_of(Version.V2, ROOT, cgroups), {**wanted, ROOT: want("0-3"), ONE: want("3", "a")}


def test_on_v2_one_write_to_a_parent_narrows_all_that_inherit_from_it() -> None:
    assert lines(plan(*inheriting(100))) == ["Narrow shared=0-2", "Narrow one=3"]


def test_on_v1_children_shrink_before_parents_and_grow_after_them() -> None:
    path = f"{SHARED}/x"
    wide, narrow = {ROOT: "0-3", SHARED: "0-3", path: "0-3"}, {ROOT: "0-3", SHARED: "0", path: "0"}
    to_narrow = {ROOT: want("0-3"), SHARED: want("0"), path: want("0")}
    to_wide = {each: want("0-3") for each in wide}
    shrinking = ["Narrow shared/x=0", "Narrow shared=0"]
    growing = ["Widen shared=0-3", "Widen shared/x=0-3"]
    assert lines(plan(tree(Version.V1, wide), to_narrow)) == shrinking
    assert lines(plan(tree(Version.V1, narrow), to_wide)) == growing


def test_on_v2_a_child_that_must_not_grow_is_bound_first() -> None:
    sandbox, exclusive = f"{ONE}/sandbox", f"{ONE}/exclusive"
    paths = {ROOT: "0-3", ONE: "0-1", sandbox: "0-1", exclusive: "0-1"}
    observed = tree_of(
        Version.V2,
        ROOT,
        (
            Cgroup(
                path,
                CpuSet.parse(cpus) if path == ONE else CpuSet(),
                MemSet(),
                CpuSet.parse(cpus),
                BOTH,
            )
            for path, cpus in paths.items()
        ),
    )
    wanted = {ROOT: want("0-3"), ONE: want("0-2"), sandbox: want("0-1"), exclusive: want("2", "a")}
    assert lines(plan(observed, wanted)) == [
        "Grant one/sandbox=0-1",
        "Grant one=0-2",
        "Grant one/exclusive=2",
    ]


def test_on_v2_a_descendant_that_inherits_through_its_parent_is_bound_as_well() -> None:
    middle, sandbox, exclusive = f"{ONE}/m", f"{ONE}/m/sandbox", f"{ONE}/m/exclusive"
    found = {ROOT: "0-3", ONE: "0-1", middle: "", sandbox: "", exclusive: ""}
    few, every = CpuSet([0, 1]), CpuSet(range(4))
    observed = tree_of(
        Version.V2,
        ROOT,
        (
            Cgroup(path, CpuSet.parse(asked), MemSet(), every if path == ROOT else few, BOTH)
            for path, asked in found.items()
        ),
    )
    wanted = {path: want("0-2") for path in (ONE, middle)}
    wanted |= {ROOT: want("0-3"), sandbox: want("0-1"), exclusive: want("2", "a")}
    assert lines(plan(observed, wanted)) == [
        "Grant one/m/sandbox=0-1",
        "Grant one=0-2",
        "Grant one/m/exclusive=2",
    ]


def test_on_v2_an_offline_cpu_is_removed_from_what_is_asked_for() -> None:
    """The cgroup would get the CPU when it returns, even if it is exclusive to another then."""
    online, asked = CpuSet([0, 1, 2]), CpuSet([2, 3])
    cgroups = (
        Cgroup(ROOT, CpuSet(), MemSet(), online, BOTH),
        Cgroup(ONE, asked, MemSet(), asked & online, BOTH),
    )
    wanted = {ROOT: want("0-2"), ONE: want("2", "a")}
    assert lines(plan(tree_of(Version.V2, ROOT, cgroups), wanted)) == ["Narrow one=2"]


def test_memory_moves_last_and_on_v1_only_that_of_assigned_containers() -> None:
    sets, mems = {ROOT: "0-3", SHARED: "0-1", ONE: "2-3"}, {SHARED: "0"}
    wanted = {ROOT: want("0-3"), SHARED: want("0-1"), ONE: want("3", "a", mems="1")}
    planned = plan(tree(Version.V1, sets, mems), wanted)
    assert lines(planned) == [
        "Prepare shared=0-1",
        "Narrow one=3",
        "MoveMemory one=True",
        "MoveMemory one=1",
        "MoveMemory one=False",
    ]
    assert planned.writes == (*planned.quick, *planned.moves)
    assert [str(write.setting) for write in planned.moves] == [
        "cpuset.memory_migrate",
        "cpuset.mems",
        "cpuset.memory_migrate",
    ]
    (move,) = plan(tree(Version.V2, sets, mems), wanted).moves
    assert (move.value, move.may_block) == (MemSet([1]), True)


def test_on_v1_pages_of_containers_without_assigned_numa_nodes_stay() -> None:
    """Its NUMA nodes changed because those of the machine did."""
    sets = {ROOT: "0-3", SHARED: "0-1", ONE: "2-3"}
    exclusive = replace(want("2-3", "a"), mems=MemSet([0]))
    wanted = {ROOT: want("0-3"), SHARED: want("0-1", mems="0"), ONE: exclusive}
    moves = lines(plan(tree(Version.V1, sets), wanted))
    assert sorted(moves) == ["MoveMemory one=0", "MoveMemory shared=0"]


@pytest.mark.parametrize("version", Version)
def test_kubepods_loses_no_cpu(version: Version) -> None:
    wanted = {ROOT: want("0-2", mems="0"), SHARED: want("0-2")}
    assert lines(plan(tree(version, {ROOT: "0-3", SHARED: "0-2"}), wanted)) == []


def test_on_v1_kubepods_gains_before_all_others() -> None:
    found = {ROOT: "0-1", SHARED: "0-1", ONE: "1"}
    wanted = {ROOT: want("0-3"), SHARED: want("0"), ONE: want("3", "a")}
    first, *_ = plan(tree(Version.V1, found), wanted).writes
    assert (first.path, str(first.value)) == (ROOT, "0-3")


def test_on_v2_kubepods_is_not_written_whatever_it_lacks() -> None:
    found, mems = {ROOT: "0-1", SHARED: "0-1", ONE: "1"}, {ROOT: "0", SHARED: "0", ONE: "0"}
    wanted = {ROOT: want("0-3"), SHARED: want("0,2"), ONE: want("3", "a", mems="1")}
    planned = plan(tree(Version.V2, found, mems), wanted)
    assert lines(planned) == ["Narrow shared=0"]


def test_an_empty_cgroup_gets_both_sets_before_tasks_enter() -> None:
    observed = tree(Version.V1, {ROOT: "0-3", SHARED: "", ONE: ""}, {SHARED: "0", ONE: ""})
    created = {**observed.cgroups, SHARED: Cgroup(SHARED, CpuSet(), MemSet(), CpuSet(), MemSet())}
    created[ONE] = Cgroup(ONE, CpuSet(), MemSet(), CpuSet(), MemSet())
    wanted = {ROOT: want("0-3"), SHARED: want("0-1"), ONE: want("3", "a", mems="1")}
    planned = plan(Tree(Version.V1, ROOT, created), wanted)
    assert planned.moves == ()
    assert sorted(lines(planned)) == [
        "Grant one=3",
        "Narrow shared=0-1",
        "Prepare one=1",
        "Prepare shared=0-1",
    ]
