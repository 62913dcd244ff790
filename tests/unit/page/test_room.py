"""What is free on NUMA nodes, and how many pods of which size fit there."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_page.views.room import SIZES, fitting, is_fragmented, is_full, rooms

TOPOLOGY = Topology(
    tuple(Cpu(cpu, cpu // 2, cpu // 8, cpu // 8, cpu // 8) for cpu in range(16)),
    (NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)
"""Two NUMA nodes of four cores with two threads each: CPUs 0-7 and 8-15."""


def spec(exclusive: str, reserved: str = "0-1") -> NodeAssignmentSpec:
    owned, kept = CpuSet.parse(exclusive), CpuSet.parse(reserved)
    entry = ContainerAssignment("uid", "default", "a", "main", owned, exclusive=True)
    shared = TOPOLOGY.online - owned
    return NodeAssignmentSpec(pools=Pools(kept, shared), containers=(entry,) if owned else ())


def free(spec: NodeAssignmentSpec, *, whole_cores: bool = False) -> list[str]:
    return [str(one.free) for one in rooms(spec, TOPOLOGY, whole_cores=whole_cores)]


@pytest.mark.parametrize(
    ("exclusive", "whole_cores", "expected"),
    [
        ("", False, ["2-7", "8-15"]),
        ("2-3", False, ["4-7", "8-15"]),
        ("2,8", False, ["3-7", "9-15"]),
        ("2,8", True, ["4-7", "10-15"]),
        ("2-15", False, ["", ""]),
    ],
    ids=["empty node", "a core", "halves of cores", "half a core serves nobody", "all"],
)
def test_what_is_free_is_neither_reserved_nor_exclusive(
    exclusive: str, whole_cores: bool, expected: list[str]
) -> None:
    assert free(spec(exclusive), whole_cores=whole_cores) == expected


def test_the_last_cpu_of_the_shared_pool_is_given_to_nobody() -> None:
    strict = NodeAssignmentSpec(
        pools=Pools(CpuSet.parse("0-1"), CpuSet.parse("14-15")),
        containers=(ContainerAssignment("u", "n", "p", "c", CpuSet.parse("2-13"), exclusive=True),),
    )
    assert free(strict) == ["", "15"]
    assert free(strict, whole_cores=True) == ["", ""]


def test_a_pod_counts_where_it_fits_on_one_numa_node() -> None:
    counts = dict(zip(SIZES, fitting(rooms(spec("2-3"), TOPOLOGY, whole_cores=False)), strict=True))
    assert counts == {1: 12, 2: 6, 4: 3, 8: 1, 16: 0, 32: 0, 64: 0}


@pytest.mark.parametrize(
    ("exclusive", "full", "fragmented"),
    [
        ("", False, False),
        ("2-15", True, False),
        ("4-7,12-15", False, False),
        ("3-7,10-15", False, False),
        ("4-7,10-15", False, True),
    ],
    ids=["empty", "all", "2 and 4 of 8", "1 and 2", "2 and 2"],
)
def test_it_is_fragmented_if_half_of_what_is_free_is_elsewhere(
    exclusive: str, full: bool, fragmented: bool
) -> None:
    found = rooms(spec(exclusive), TOPOLOGY, whole_cores=False)
    assert (is_full(found), is_fragmented(found)) == (full, fragmented)


def test_a_node_whose_cpus_are_not_divided_has_no_rooms() -> None:
    assert rooms(NodeAssignmentSpec(mode="None"), TOPOLOGY, whole_cores=False) == []
