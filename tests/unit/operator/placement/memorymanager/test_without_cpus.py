"""NUMA nodes with memory and no CPUs: `memory.nodesWithoutCPUs`."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.topology import NumaNode, Topology
from numapin_operator.placement import (
    Node,
    PlacementError,
    memory_without_cpus,
    resolve,
)
from support.values.placement import GIB, machine, pod, policy

ROWS = ((10, 21, 14), (21, 10, 24), (14, 24, 10))
PAGES = {"1Gi": 8}


def with_cxl(sizes: tuple[int, int, int] = (16, 16, 64)) -> Topology:
    """Two NUMA nodes with four CPUs each, and one without, nearest to the first; sizes in GiB."""
    nodes = (NumaNode(one, size * GIB, {}, ROWS[one]) for one, size in enumerate(sizes))
    return replace(machine(8, numa_nodes=2), numa_nodes=tuple(nodes))


def bound(topology: Topology, asks: tuple[str, ...], **memory: Any) -> list[str]:
    """The NUMA nodes of each pod's memory, or why it is refused; each wants one CPU."""
    node, found = Node(resolve(topology, policy(memory=memory))), list[str]()
    for number, size in enumerate(asks):
        try:
            placed = node.place(pod(f"p{number}", "1", memory=size))
        except PlacementError as refused:
            found.append(refused.reason)
        else:
            found.append(str(MemSet.from_mask(placed.containers[0].mems)))
    return found


@pytest.mark.parametrize(
    ("value", "asks", "found"),
    [
        pytest.param("Any", ("10Gi", "10Gi", "10Gi"), ["0", "1", "2"]),
        pytest.param("Any", ("20Gi",), ["2"], id="one NUMA node before two with CPUs"),
        pytest.param("Spill", ("20Gi",), ["0-1"], id="NUMA nodes with CPUs come first"),
        pytest.param("Spill", ("10Gi", "10Gi", "8Gi", "20Gi"), ["0", "1", "0-1", "2"]),
        pytest.param("Spill", ("70Gi",), ["0,2"], id="more than any has"),
        pytest.param("Never", ("20Gi", "10Gi", "4Gi"), ["0-1", "1", "NotEnoughMemory"]),
        pytest.param(None, ("20Gi", "40Gi"), ["0-1", "NotEnoughMemory"], id="unset is never"),
    ],
)
def test_the_policy_says_whether_memory_without_cpus_is_used(
    value: str | None, asks: tuple[str, ...], found: list[str]
) -> None:
    fields = {} if value is None else {"nodesWithoutCPUs": value}
    assert bound(with_cxl(), asks, policy="Preferred", **fields) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [("Any", ["2", "2"]), ("Spill", ["0", "2"]), ("Never", ["0", "NotEnoughMemory"])],
)
def test_one_numa_node_alone_may_be_one_without_cpus(value: str, found: list[str]) -> None:
    topology = with_cxl((16, 8, 64))
    asked = {"policy": "SingleNUMA", "nodesWithoutCPUs": value}
    first = bound(topology, ("12Gi", "20Gi"), **asked)
    assert first[1:] == found[1:]
    assert first[0] == "0"


def test_static_does_what_the_kubelet_does_unless_it_is_kept_off() -> None:
    topology = with_cxl((8, 8, 64))
    kubelets = bound(topology, ("10Gi",), policy="Static")
    assert kubelets == bound(topology, ("10Gi",), policy="Static", nodesWithoutCPUs="Any") == ["2"]
    assert bound(topology, ("10Gi",), policy="Static", nodesWithoutCPUs="Never") == ["0-1"]


def test_huge_pages_are_kept_off_likewise() -> None:
    topology = with_cxl()
    nodes = tuple(
        replace(one, hugepages=PAGES if one.id == 2 else {}) for one in topology.numa_nodes
    )
    asks = pod("p", "1", memory="1Gi")
    huge = replace(asks.containers[0], memory=(("hugepages-1Gi", GIB), ("memory", GIB)))
    wanted = replace(asks, containers=(huge,))

    def placed(value: str) -> str:
        spec = policy(memory={"policy": "Preferred", "nodesWithoutCPUs": value})
        node = Node(resolve(replace(topology, numa_nodes=nodes), spec))
        return str(MemSet.from_mask(node.place(wanted).containers[0].mems))

    with pytest.raises(PlacementError, match="hugepages-1Gi"):
        placed("Never")
    assert placed("Spill") == placed("Any") == "2"


def test_where_no_numa_node_with_cpus_has_memory_the_others_are_used() -> None:
    assert bound(with_cxl((0, 0, 64)), ("10Gi",), policy="Preferred") == ["2"]


def test_a_refusal_says_what_is_kept_off() -> None:
    node = Node(resolve(with_cxl(), policy(memory={"policy": "Preferred"})))
    with pytest.raises(PlacementError) as refused:
        node.place(pod("p", "1", memory="40Gi"))
    assert str(refused.value).endswith(
        "1: 4 CPUs + 16 GiB memory, 0: 3 CPUs + 16 GiB memory,"
        " 2: without CPUs, kept off by memory.nodesWithoutCPUs"
    )


def test_what_is_reserved_of_memory_that_is_kept_off_makes_no_difference() -> None:
    reserved = [{"numaNode": 2, "memory": "64Gi"}, {"numaNode": 0, "memory": "1Gi"}]
    found = resolve(with_cxl(), policy(memory={"policy": "Preferred", "reserved": reserved}))
    assert found.capacity == {"memory": {0: 15 * GIB, 1: 16 * GIB, 2: 0}}


def test_the_condition_names_them_only_where_nothing_was_decided() -> None:
    topology = with_cxl()
    said = memory_without_cpus(policy(memory={"policy": "Static"}), topology)
    assert said.startswith("NUMA node 2 with memory and no CPUs")
    assert "set memory.nodesWithoutCPUs to Never" in said
    for memory in (
        {"policy": "Static", "nodesWithoutCPUs": "Any"},
        {"policy": "Static", "nodesWithoutCPUs": "Never"},
        {"policy": "Preferred"},
        {"policy": "None"},
    ):
        assert memory_without_cpus(policy(memory=memory), topology) == ""
