"""Topology -> status.topology -> Topology loses nothing that the planner asks for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.compact import MAX_NODES_WITH_DISTANCES, compact_topology
from numapin_api.hardware.limits import MAX_DEVICES, MAX_NAMES, MAX_PCI_ROOTS, MAX_WARNINGS
from numapin_api.hardware.machine_file import format_machine, parse_machine
from numapin_api.hardware.restore import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_api.hardware.status_consistency import TopologyError
from numapin_api.topology import NO_CACHE, Cpu, DeviceName, NumaNode, PciDevice, PciRoot, Topology

TWO_NODES = Topology(
    cpus=tuple(
        Cpu(id=cpu, core=cpu % 4, socket=cpu % 4 // 2, uncore_cache=7, numa_node=cpu % 4 // 2)
        for cpu in range(8)
    ),
    numa_nodes=(
        NumaNode(0, 1 << 30, {"2Mi": 4}, (10, 21)),
        NumaNode(1, 2 << 30, {}, (21, 10)),
    ),
    offline=CpuSet.parse("9"),
    isolated=CpuSet.parse("3"),
    pci=(
        PciDevice("0000:3b:00.0", "0200", 1),
        PciDevice("0000:00:1f.0", "0601", 0),
        PciDevice("0000:5e:00.0", "0108", None),
    ),
    warnings=("cache ids are missing",),
)


def reported(topology: Topology) -> TopologyStatus:
    """The compact form as the models read it; they find nothing that is not theirs, or missing."""
    wire = compact_topology(topology)
    status = TopologyStatus.model_validate(wire)
    assert status.to_wire() == wire
    return status


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Any machine of ours: cores within sockets, caches and NUMA nodes as they come."""
    numa_count, threads = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    cores = draw(st.integers(1, 12))
    socket = draw(st.lists(st.integers(0, 3), min_size=cores, max_size=cores))
    cache = draw(st.lists(st.integers(NO_CACHE, 3), min_size=cores, max_size=cores))
    numa = draw(st.lists(st.integers(0, numa_count - 1), min_size=cores, max_size=cores))
    return Topology(
        cpus=tuple(
            Cpu(cpu, cpu % cores, socket[cpu % cores], cache[cpu % cores], numa[cpu % cores])
            for cpu in range(cores * threads)
        ),
        numa_nodes=tuple(NumaNode(id_, draw(st.integers(0, 1 << 40))) for id_ in range(numa_count)),
    )


@given(machines())
def test_the_way_there_and_back_loses_nothing(machine: Topology) -> None:
    assert restore_topology(reported(machine)) == machine


def test_only_devices_for_which_locality_matters_are_reported() -> None:
    status = reported(TWO_NODES)
    assert [(group.numa_node, group.devices) for group in status.pci] == [
        (1, ("0000:3b:00.0/0200",)),
        (None, ("0000:5e:00.0/0108",)),
    ]
    assert restore_topology(status).pci == (TWO_NODES.pci[0], TWO_NODES.pci[2])


def test_it_is_compact_and_exact() -> None:
    assert compact_topology(TWO_NODES) == {
        "numaNodes": [
            {
                "id": 0,
                "cpus": "0-1,4-5",
                "memoryBytes": 1 << 30,
                "hugepages": {"2Mi": 4},
                "distances": [10, 21],
            },
            {
                "id": 1,
                "cpus": "2-3,6-7",
                "memoryBytes": 2 << 30,
                "hugepages": {},
                "distances": [21, 10],
            },
        ],
        "sockets": [{"id": 0, "cpus": "0-1,4-5"}, {"id": 1, "cpus": "2-3,6-7"}],
        "uncoreCaches": [{"id": 7, "cpus": "0-7"}],
        "cores": ["0,4", "1,5", "2,6", "3,7"],
        "offline": "9",
        "isolated": "3",
        "pci": [
            {"numaNode": 1, "devices": ["0000:3b:00.0/0200"]},
            {"devices": ["0000:5e:00.0/0108"]},
        ],
        "warnings": ["cache ids are missing"],
    }


def test_a_machine_without_devices_or_threads_says_little() -> None:
    machine = Topology(cpus=(Cpu(0, 0, 0, NO_CACHE, 0),), numa_nodes=(NumaNode(0, 1),))
    status = reported(machine)
    assert (status.cores, status.uncore_caches, status.pci) == ((), (), ())
    assert restore_topology(status) == machine


def test_equal_topologies_have_equal_hashes() -> None:
    assert hash(replace(TWO_NODES)) == hash(TWO_NODES)
    assert replace(TWO_NODES) == TWO_NODES
    assert hash(replace(TWO_NODES, cpus=TWO_NODES.cpus[1:])) != hash(TWO_NODES)


def test_machines_of_one_model_share_their_cpus() -> None:
    """5,000 machines of one model differ in memory and devices; their CPUs are most of the data."""
    more_memory = replace(
        TWO_NODES, numa_nodes=(NumaNode(0, 3 << 30), NumaNode(1, 3 << 30)), pci=()
    )
    one, other = (restore_topology(reported(machine)) for machine in (TWO_NODES, more_memory))
    assert one.cpus is other.cpus


def of_numa_nodes(count: int) -> Topology:
    """One CPU in each NUMA node, and all distances."""
    return Topology(
        cpus=tuple(Cpu(id_, id_, 0, NO_CACHE, id_) for id_ in range(count)),
        numa_nodes=tuple(NumaNode(id_, 1 << 30, distances=(10,) * count) for id_ in range(count)),
    )


def test_too_many_devices_are_left_out_and_counted() -> None:
    machine = of_numa_nodes(1)
    devices = [PciDevice(f"{n:04x}:00:00.0", "0200", 0) for n in range(MAX_DEVICES + 3)]
    bridges = [PciDevice(f"{n:04x}:01:00.0", "0604", 0) for n in range(3)]
    full = reported(replace(machine, pci=tuple(bridges + devices[:MAX_DEVICES])))
    assert (sum(len(group.devices) for group in full.pci), full.warnings) == (MAX_DEVICES, ())
    cut = reported(replace(machine, pci=tuple(bridges + devices)))
    assert cut.pci == full.pci
    assert cut.warnings == ("too many PCI devices: 3 are not reported",)


NAMES = (
    DeviceName("net/ens1f0", ("0000:3b:00.0",)),
    DeviceName("block/nvme0n1", ("0000:5e:00.0", "0000:af:00.0")),
)


def test_names_of_devices_are_reported_and_read_back() -> None:
    machine = replace(TWO_NODES, names=NAMES)
    assert compact_topology(machine)["names"] == [
        "net/ens1f0=0000:3b:00.0",
        "block/nvme0n1=0000:5e:00.0,0000:af:00.0",
    ]
    assert restore_topology(reported(machine)).names == NAMES
    assert hash(machine) != hash(TWO_NODES)
    assert parse_machine(format_machine(machine), "file").names == NAMES


@pytest.mark.parametrize(
    "text", ["net/a=", "net/a=b", "gpu/a=0000:3b:00.0", "net/a\x1b=0000:3b:00.0"]
)
def test_a_name_that_no_enforcer_reports_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TopologyStatus.model_validate({"names": [text]})


def test_too_many_names_are_left_out_and_counted() -> None:
    names = tuple(DeviceName(f"block/sd{n}", ("0000:3b:00.0",)) for n in range(MAX_NAMES + 2))
    cut = reported(replace(of_numa_nodes(1), names=names))
    assert len(cut.names or ()) == MAX_NAMES
    (warning,) = cut.warnings
    assert warning == "too many network interfaces and disks: 2 are not reported by name"


def test_pci_roots_are_reported_and_read_back() -> None:
    roots = (PciRoot("pci0000:3a", MemSet((0,))), PciRoot("pci10000:00", MemSet((0, 1))))
    machine = replace(TWO_NODES, pci_roots=roots)
    assert compact_topology(machine)["pciRoots"] == ["pci0000:3a=0", "pci10000:00=0-1"]
    assert restore_topology(reported(machine)).pci_roots == roots
    assert hash(machine) != hash(TWO_NODES)
    assert parse_machine(format_machine(machine), "file").pci_roots == roots


@pytest.mark.parametrize("text", ["pci0000:3a", "pci0000:3a=", "0000:3a=0", "pci0000:3a=0 1"])
def test_a_pci_root_that_no_enforcer_reports_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TopologyStatus.model_validate({"pciRoots": [text]})


@pytest.mark.parametrize("text", ["pci0000:3a=2-1", "pci0000:3a=9999"])
def test_a_pci_root_near_what_is_no_list_contradicts_itself(text: str) -> None:
    status = reported(TWO_NODES).model_copy(update={"pci_roots": (text,)})
    with pytest.raises(TopologyError, match=r"^pciRoots\[0\]: "):
        restore_topology(status)


def test_too_many_pci_roots_are_left_out_and_counted() -> None:
    numbers = range(MAX_PCI_ROOTS + 2)
    roots = tuple(PciRoot(f"pci{number:04x}:00", MemSet((0,))) for number in numbers)
    cut = reported(replace(of_numa_nodes(1), pci_roots=roots))
    assert len(cut.pci_roots or ()) == MAX_PCI_ROOTS
    assert cut.warnings == ("too many PCI root complexes: 2 are not reported",)


def test_too_many_warnings_are_counted_and_what_is_left_out_comes_first() -> None:
    machine = of_numa_nodes(1)
    texts = tuple(f"fault {number}" for number in range(MAX_WARNINGS))
    assert reported(replace(machine, warnings=texts)).warnings == texts
    devices = tuple(PciDevice(f"{n:04x}:00:00.0", "0200", 0) for n in range(MAX_DEVICES + 1))
    cut = reported(replace(machine, warnings=texts, pci=devices)).warnings
    assert len(cut) == MAX_WARNINGS
    assert cut[0] == "too many PCI devices: 1 are not reported"
    assert cut[1:-1] == texts[: MAX_WARNINGS - 2]
    assert cut[-1] == "and 2 more warnings"


def test_distances_of_too_many_numa_nodes_are_left_out() -> None:
    whole = reported(of_numa_nodes(MAX_NODES_WITH_DISTANCES))
    assert all(len(node.distances) == MAX_NODES_WITH_DISTANCES for node in whole.numa_nodes)
    assert whole.warnings == ()
    cut = reported(of_numa_nodes(MAX_NODES_WITH_DISTANCES + 1))
    assert {node.distances for node in cut.numa_nodes} == {()}
    assert cut.warnings == ("too many NUMA nodes: distances are not reported",)
