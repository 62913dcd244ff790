"""Blocks that are bound together are bound as one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.placement import Block, numa_mask
from numapin_operator.placement.memorymanager.tables import MemoryTables

CAPACITY = {"memory": {0: 100, 1: 50, 4: 70}, "hugepages-2Mi": {0: 8, 4: 8}}
NUMA_NODES = (0, 1, 4)

SINGLE = st.sampled_from((0, 1, 4, 9)).map(lambda one: numa_mask([one]))
ANY = st.sets(st.sampled_from((0, 1, 4, 9)), min_size=1).map(numa_mask)
"""NUMA node 9 is one that the machine has lost."""


def blocks(numa_nodes: st.SearchStrategy[int]) -> st.SearchStrategy[list[Block]]:
    resources = st.sampled_from(("memory", "hugepages-2Mi", "hugepages-1Gi"))
    return st.lists(st.builds(Block, numa_nodes, resources, st.integers(0, 60)), max_size=8)


def contents(tables: MemoryTables) -> tuple[object, ...]:
    return tables.free, tables._bound, tables._uses, tables._groups, tables._grouped


@given(blocks(SINGLE) | blocks(ANY))
def test_the_tables_are_the_same(given_blocks: list[Block]) -> None:
    one, other = MemoryTables(CAPACITY, NUMA_NODES), MemoryTables(CAPACITY, NUMA_NODES)
    for block in given_blocks:
        one.assign(block)
    other.assign_all(given_blocks)
    assert contents(other) == contents(one)
