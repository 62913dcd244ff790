"""Every captured machine is discovered as `expected.json` says, fact by fact.

Not compared, because a Topology does not hold them: dies, clusters, books, L2 caches, `core_id`,
kinds of CPUs, `near_cpus`, PCI vendors. `allowed_*` is what a cgroup allowed, not hardware.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology, page_size_bytes
from numapin_enforcer.hardware.discovery import discover

HERE = Path(__file__).parents[3] / "machines"

PACKAGES_DOUBTFUL = {"power7-256cpu-8n"}
"""Every package id is -1 and core_siblings has only the core: a NUMA node counts as a package."""

NODES_DOUBTFUL = {"harpertown-overlapping-nodes"}
"""Eight nodes list all CPUs; the reference drops seven with their memory, we report all memory."""

HOMELESS = {"haswell-2s-offline-cpu0-node0": CpuSet.parse("4,6,8,10,12,14,16,18,20")}
"""CPUs of an offline NUMA node have none in the reference; they must have one to be placed on."""

PCI_NOT_IN_REFERENCE = {"sandybridge-2s2n-many-pci": {"0000:00:11.0"}}
"""The reference drops a bridge whose bus numbers make no sense; it is a device all the same."""

WARNINGS = {
    "harpertown-overlapping-nodes": ["node[1-7]/cpumap lists CPUs of lower-numbered nodes"],
    "haswell-2s-offline-cpu0-node0": [
        "node[1]/distance must have one number for each online NUMA node (1)",
        "CPUs 4,6,8,10,12,14,16,18,20 are in no online NUMA node",
    ],
    "power7-256cpu-8n": ["cpu[0-255]/topology/physical_package_id is absent or negative"],
    "s390-books-nonuma": [
        "cpu[0-19]/topology/physical_package_id is absent or negative",
        "cpu/cpu*/cache is absent",
    ],
}
NO_L3_IDS = "the L3 has no unique id"


@pytest.fixture
def expected(captured_machine: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((HERE / f"{captured_machine}.expected.json").read_text())
    return read


@pytest.fixture
def topology(captured_machine: str, captured_machines: Path) -> Topology:
    root = captured_machines / captured_machine
    return discover(root / "sys", root / "proc")


def _lists(groups: Any) -> list[list[int]]:
    return sorted(list(cpus) for cpus in groups)


def test_cpus_online_and_known(topology: Topology, expected: dict[str, Any]) -> None:
    assert list(topology.online) == expected["online_cpus"]
    assert list(topology.online | topology.offline) == expected["known_cpus"]


def test_cores(topology: Topology, expected: dict[str, Any]) -> None:
    assert _lists(topology.core_cpus.values()) == sorted(expected["cores"])
    widths = {len(core) for core in topology.core_cpus.values()}
    assert sorted(widths) == expected["smt_widths"]
    for cpu in topology.cpus:
        siblings = expected["cpus"][str(cpu.id)]["core"]
        assert cpu.core == siblings[0]


def test_sockets(topology: Topology, captured_machine: str, expected: dict[str, Any]) -> None:
    if captured_machine in PACKAGES_DOUBTFUL:
        assert list(topology.socket_cpus.values()) == list(topology.numa_cpus.values())
        return
    assert _lists(topology.socket_cpus.values()) == sorted(p["cpus"] for p in expected["packages"])
    for package in expected["packages"]:
        if package["id"] is not None:
            assert list(topology.socket_cpus[package["id"]]) == package["cpus"]


def test_shared_caches(topology: Topology, expected: dict[str, Any]) -> None:
    assert _lists(topology.uncore_cache_cpus.values()) == sorted(expected["l3_groups"])
    for cpu in topology.cpus:
        shared = expected["cpus"][str(cpu.id)]["l3"]
        assert list(topology.uncore_cache_cpus.get(cpu.uncore_cache, ())) == (shared or [])


def test_numa_node_of_each_cpu(
    topology: Topology, captured_machine: str, expected: dict[str, Any]
) -> None:
    homeless = HOMELESS.get(captured_machine, CpuSet())
    for cpu in topology.cpus:
        recorded = expected["cpus"][str(cpu.id)]["numa_node"]
        assert (recorded is None) == (cpu.id in homeless)
        assert cpu.numa_node == (recorded if recorded is not None else 1)


def test_numa_nodes(topology: Topology, captured_machine: str, expected: dict[str, Any]) -> None:
    if captured_machine in NODES_DOUBTFUL:
        assert [node.id for node in topology.numa_nodes] == list(range(8))
        assert {node.distances for node in topology.numa_nodes} == {(10,) * 8}
        assert topology.numa_nodes[0].memory_bytes == expected["memory_bytes"]
        return
    assert [str(node.id) for node in topology.numa_nodes] == list(expected["numa_nodes"])
    assert sum(node.memory_bytes for node in topology.numa_nodes) == expected["memory_bytes"]
    for node in topology.numa_nodes:
        recorded = expected["numa_nodes"][str(node.id)]
        assert node.memory_bytes == recorded["memory_bytes"]
        assert node.on_device == (recorded["subtype"] == "GPUMemory")
        pages = {str(page_size_bytes(size)): count for size, count in node.hugepages.items()}
        assert pages == recorded["hugepages"]
        homeless = HOMELESS.get(captured_machine, CpuSet())
        assert list(topology.numa_cpus[node.id] - homeless) == recorded["cpus"]


def test_distances(topology: Topology, captured_machine: str, expected: dict[str, Any]) -> None:
    order = [str(node.id) for node in topology.numa_nodes]
    for node in topology.numa_nodes:
        if captured_machine in NODES_DOUBTFUL:
            continue
        recorded = expected["numa_nodes"][str(node.id)]["distances"]
        if recorded is None:
            assert node.distances == (10,)
        else:
            assert dict(zip(order, node.distances, strict=True)) == recorded


def test_pci_devices(topology: Topology, captured_machine: str, expected: dict[str, Any]) -> None:
    extra = PCI_NOT_IN_REFERENCE.get(captured_machine, set())
    found = {device.address: (f"0x{device.pci_class}", device.numa_node) for device in topology.pci}
    assert found.keys() >= extra
    recorded = {one["address"]: (one["class"], one["numa_node"]) for one in expected["pci_devices"]}
    assert {address: found[address] for address in found.keys() - extra} == recorded


def test_warnings_say_what_was_wrong_and_nothing_else(
    topology: Topology, captured_machine: str
) -> None:
    expected = WARNINGS.get(captured_machine, [])
    found = [text for text in topology.warnings if NO_L3_IDS not in text]
    assert len(found) == len(expected)
    for text, start in zip(found, expected, strict=True):
        assert start in text
        assert ": " in text


def test_missing_cache_ids_are_reported(
    topology: Topology, captured_machine: str, captured_machines: Path
) -> None:
    root = captured_machines / captured_machine
    ids = list(root.glob("sys/devices/system/cpu/cpu*/cache/index3/id"))
    reported = any(NO_L3_IDS in text for text in topology.warnings)
    assert reported == (not ids and bool(topology.uncore_cache_cpus))


def test_no_file_is_read_twice(
    captured_machine: str, captured_machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()
    real_open = os.open

    def counting_open(path: str, flags: int) -> int:
        opened[path] += 1
        return real_open(path, flags)

    monkeypatch.setattr("numapin_enforcer.hardware.sysfs.sysfs_tree.os.open", counting_open)
    root = captured_machines / captured_machine
    discover(root / "sys", root / "proc")
    assert opened[f"{root}/sys/devices/system/cpu/isolated"] == 1
    assert [path for path, times in opened.items() if times > 1] == []
