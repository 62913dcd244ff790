"""Missing memory, distances and devices, and random trees of files: never a crash."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.hardware.machine_file import format_machine, machine_document, parse_machine
from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import DiscoveryError, discover

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
PCI = "sys/bus/pci/devices/0000:3b:00.0"
Files = dict[str, str | bytes | None]
Discovered = Callable[..., Topology]


@pytest.mark.parametrize(
    ("put", "drop", "sizes"),
    [
        pytest.param({}, ["node1/meminfo"], {0: 4000, 1: 4000}, id="one node's meminfo missing"),
        pytest.param(
            {"proc/meminfo": "MemTotal: 6000 kB"},
            ["/meminfo"],
            {0: 3000, 1: 3000},
            id="every node's meminfo missing",
        ),
        pytest.param(
            {f"{NODE}/node{node}/meminfo": "MemTotal: 0 kB" for node in (0, 1)},
            [],
            {0: 4000, 1: 4000},
            id="no node has memory",
        ),
        pytest.param(
            {f"{NODE}/node1/meminfo": b"\xff\xfeMemTotal: many kB"},
            [],
            {0: 4000, 1: 4000},
            id="garbage",
        ),
    ],
)
def test_unreported_memory_is_a_share_of_the_whole(
    put: Files, drop: list[str], sizes: dict[int, int], discovered: Discovered
) -> None:
    topology = discovered(put, *drop)
    assert {node.id: node.memory_bytes >> 10 for node in topology.numa_nodes} == sizes
    assert "meminfo reports no memory: assumed" in topology.warnings[0]


def test_machine_without_numa_has_the_memory_of_proc(discovered: Discovered) -> None:
    pages = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
    (node,) = discovered({pages: "3"}, "/node/").numa_nodes
    assert (node.id, node.memory_bytes >> 10) == (0, 8000)
    assert (node.hugepages, node.distances) == ({"1Gi": 3}, (10,))


@pytest.mark.parametrize("content", ["", "10", "10 x", "10 21 21", "-1 10"])
def test_invalid_distances_become_the_kernels_defaults(
    content: str, discovered: Discovered
) -> None:
    topology = discovered({f"{NODE}/node1/distance": content})
    assert [node.distances for node in topology.numa_nodes] == [(10, 21), (20, 10)]
    assert "node[1]/distance must have one number for each" in topology.warnings[0]


@pytest.mark.parametrize(
    ("files", "numa_node"),
    [
        ({"numa_node": "-1"}, None),
        ({"numa_node": "7"}, None),
        ({"numa_node": "7", "local_cpus": "c"}, 1),
        ({"numa_node": "-1", "local_cpus": "ff"}, None),
        ({"numa_node": "-1", "local_cpus": "0"}, None),
        ({"numa_node": "?", "local_cpulist": "0-1"}, 0),
    ],
)
def test_pci_device_has_the_numa_node_of_its_file_or_else_of_its_cpus(
    files: dict[str, str], numa_node: int | None, discovered: Discovered
) -> None:
    put = {f"{PCI}/{name}": text for name, text in files.items()}
    (device,) = discovered(put, "numa_node").pci
    assert device.numa_node == numa_node


def test_device_without_a_class_is_ignored(discovered: Discovered) -> None:
    topology = discovered({f"{PCI}/class": "network"})
    assert topology.pci == ()
    assert "0000:3b:00.0/class is not a PCI class" in topology.warnings[0]


def test_unreadable_files_are_reported_and_treated_as_absent(discovered: Discovered) -> None:
    topology = discovered({f"{CPU}/isolated": None}, "isolated")
    assert topology.warnings == (
        "devices/system/cpu/isolated cannot be read (Is a directory): treated as absent",
    )
    assert not topology.isolated


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"proc/meminfo": "x"}, "is absent, empty or closed to this user"),
        ({f"{CPU}/kernel_max": "7"}, "has no online CPU"),
        ({f"{CPU}/online": "0-3"}, "cpu[0-3] does not exist but is listed as online"),
        ({f"{CPU}/cpu0/online": "0"}, "has no online CPU"),
    ],
)
def test_machine_without_cpus_is_an_error_with_path_and_remedy(
    files: Files, problem: str, tmp_path: Path, write_files: Callable[[Path, Files], None]
) -> None:
    write_files(tmp_path, files)
    with pytest.raises(DiscoveryError) as refused:
        discover(tmp_path / "sys", tmp_path / "proc")
    assert str(refused.value).startswith(f"{tmp_path}/{CPU}: ")
    assert problem in str(refused.value)
    assert "give the path of the machine's /sys" in str(refused.value)


NONSENSE: st.SearchStrategy[str | bytes | None] = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "\n", "\0\n", "(null)\n", "-1", "0", "3", "7", "ff", "0-7", "7-0", "99999999", "0-999"]
    ),
    st.sampled_from(["f" * 9, ",", "ffffffff," * 70 + "1", "10 10 10", "Node 0 MemTotal: 1 kB"]),
    st.binary(max_size=12),
)


@given(st.data())
def test_no_tree_of_files_makes_discovery_crash(
    sound_machine: Files, write_files: Callable[[Path, Files], None], data: st.DataObject
) -> None:
    paths = st.sampled_from(sorted(sound_machine))
    dropped = data.draw(st.sets(paths, max_size=25))
    spoiled = data.draw(st.dictionaries(paths, NONSENSE, max_size=8))
    files = {path: text for path, text in sound_machine.items() if path not in dropped}
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), files | spoiled)
        topology = _discover_or_none(Path(folder))
    if topology:
        _assert_usable(topology)


def _discover_or_none(root: Path) -> Topology | None:
    try:
        return discover(root / "sys", root / "proc")
    except DiscoveryError:
        return None


def _assert_usable(topology: Topology) -> None:
    """What every reader of a topology counts on."""
    nodes = [node.id for node in topology.numa_nodes]
    assert topology.cpus
    assert nodes == sorted(set(nodes))
    assert {cpu.numa_node for cpu in topology.cpus} <= set(nodes)
    assert all(len(node.distances) == len(nodes) for node in topology.numa_nodes)
    assert all(core == min(cpus) for core, cpus in topology.core_cpus.items())
    assert topology.online.isdisjoint(topology.offline)
    assert all("\0" not in text for text in topology.warnings)
    again = parse_machine(format_machine(topology), "again")
    assert machine_document(again) == json.loads(format_machine(topology))
