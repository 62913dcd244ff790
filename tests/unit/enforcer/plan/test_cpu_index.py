"""An index that was kept from tree to tree answers as a new one."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.cpu_index import CpuIndex
from support.fakes.worlds.reconciler_world import own

MEMS = MemSet((0,))
PATHS = ("k", "k/a", "k/b", "k/a/1", "k/a/2", "k/b/1", "k/a/1/x")
CPUS = st.sampled_from([CpuSet.parse(text) for text in ("", "0", "1", "0-1", "2-3", "0-3")])
CONTAINER = own("one", "2-3")
WANTED = st.builds(
    lambda cpus, container: Desired(cpus, MEMS, container, exclusive=container is not None),
    CPUS,
    st.sampled_from([None, CONTAINER]),
)
NODES = st.dictionaries(st.sampled_from(PATHS), st.tuples(CPUS, WANTED)).map(
    lambda some: {PATHS[0]: (CpuSet((0,)), Desired(CpuSet((0,)), MEMS))} | some
)


@given(nodes=st.lists(NODES, min_size=2, max_size=4))
def test_a_kept_index_answers_as_a_new_one(
    nodes: list[dict[str, tuple[CpuSet, Desired]]],
) -> None:
    kept: CpuIndex | None = None
    for one in nodes:
        cgroups = (Cgroup(path, cpus, MEMS, cpus, MEMS) for path, (cpus, _) in one.items())
        new = tree_of(Version.V1, PATHS[0], cgroups)
        gone = kept.tree.cgroups.keys() - new.cgroups.keys() if kept else ()
        tree = kept.tree.with_changes({**new.cgroups, **dict.fromkeys(gone)}) if kept else new
        wanted = {path: want for path, (_, want) in one.items() if path in tree.cgroups}
        fresh = CpuIndex(tree, wanted)
        if kept is None:
            kept = fresh
        else:
            kept.update(tree, wanted)
        assert answers(kept) == answers(fresh)


def answers(index: CpuIndex) -> tuple[object, ...]:
    groups = {mask: set(paths) for mask, paths in index.groups()}
    having = [index.having(CpuSet((cpu,))) for cpu in range(4)]
    return groups, having, index.withheld(), index.assigned()


def test_parents_come_before_children() -> None:
    every = CpuSet.parse("0-3")
    wanted = dict.fromkeys(PATHS, Desired(CpuSet((0,)), MEMS, CONTAINER))
    tree = tree_of(Version.V1, "k", (Cgroup(path, every, MEMS, every, MEMS) for path in PATHS))
    index = CpuIndex(tree, wanted)
    for found in (index.having(CpuSet((3,))), index.withheld(), index.assigned()):
        assert [one.path for one in found] == list(PATHS)
