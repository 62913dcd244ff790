"""A machine as boxes in boxes, whatever its sockets, NUMA nodes and devices are like."""

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Cpu, DeviceName, NumaNode, PciDevice, Topology
from numapin_page.views.machine import machine

NETWORK, BRIDGE = "0200", "0604"


def cpus(*places: tuple[int, int, int]) -> tuple[Cpu, ...]:
    """CPUs of one thread a core, each with its socket, NUMA node and L3 cache."""
    return tuple(
        Cpu(number, core=number, socket=socket, numa_node=numa_node, uncore_cache=cache)
        for number, (socket, numa_node, cache) in enumerate(places)
    )


def shape(box: dict[str, object]) -> object:
    """The kinds and numbers of boxes, and the CPUs in them."""
    inner = box.get("boxes")
    name = f"{box['kind']} {box['id']}"
    return (name, [shape(one) for one in inner]) if isinstance(inner, list) else box["cores"]


def test_sockets_are_outside_where_each_numa_node_is_in_one() -> None:
    found = machine(Topology(cpus((0, 0, 0), (1, 1, 1)), (NumaNode(0, 1), NumaNode(1, 1))))
    assert [shape(one) for one in found["boxes"]] == [
        ("socket 0", [("numa 0", [[[0]]])]),
        ("socket 1", [("numa 1", [[[1]]])]),
    ]


def test_numa_nodes_are_outside_where_one_is_in_two_sockets() -> None:
    found = machine(Topology(cpus((0, 0, 0), (1, 0, 1)), (NumaNode(0, 1 << 30),)))
    assert [shape(one) for one in found["boxes"]] == [
        ("numa 0", [("socket 0", [[[0]]]), ("socket 1", [[[1]]])])
    ]
    assert found["boxes"][0]["memory"] == "1 GiB"


def test_memory_without_cpus_names_the_nearest_numa_nodes_with_some() -> None:
    nodes = (
        NumaNode(0, 1 << 30, distances=(10, 20, 17)),
        NumaNode(1, 1 << 30, distances=(20, 10, 28)),
        NumaNode(2, 2 << 30, distances=(17, 28, 10)),
    )
    found = machine(Topology(cpus((0, 0, 0), (1, 1, 1)), nodes))
    (bare,) = found["memoryOnly"]
    assert (bare["id"], bare["memory"], bare["near"]) == (2, "2 GiB", [0])
    assert [one["to"] for one in found["distances"]][2] == [17, 28, 10]


def test_devices_are_grouped_by_numa_node_and_the_named_ones_come_first() -> None:
    devices = (
        PciDevice("0000:01:00.0", NETWORK, 1),
        PciDevice("0000:01:00.1", NETWORK, 1),
        PciDevice("0000:00:1f.0", BRIDGE, 0),
        PciDevice("0000:02:00.0", "0108", None),
    )
    names = (DeviceName("net/eth1", ("0000:01:00.1",)),)
    topology = Topology(
        cpus((0, 0, 0)), (NumaNode(0, 1),), CpuSet.parse("7"), pci=devices, names=names
    )
    found = machine(topology)
    assert [(one["numaNode"], one["kind"], one["named"]) for one in found["devices"]] == [
        (1, "Ethernet", ["0000:01:00.1 net/eth1", "0000:01:00.0"]),
        (None, "NVMe", ["0000:02:00.0"]),
    ]
    assert found["odd"] == {"offline": "7"}
