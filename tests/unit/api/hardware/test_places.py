"""Places by name, and the NUMA nodes that they are on."""

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.hardware.places import PlaceError, numa_nodes_at, parse_places
from numapin_api.topology import Cpu, DeviceName, NumaNode, PciDevice, Topology

MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, cpu // 4, -1, cpu // 2) for cpu in range(8)),
    numa_nodes=tuple(NumaNode(node, 1) for node in range(5)),
    pci=(
        PciDevice("0000:3b:00.0", "0200", 1),
        PciDevice("0001:af:00.0", "0108", 3),
        PciDevice("0000:01:00.0", "0108", None),
    ),
    names=(
        DeviceName("net/ens1f0", ("0000:3b:00.0",)),
        DeviceName("block/nvme0n1", ("0000:3b:00.0", "0001:af:00.0")),
        DeviceName("block/sda", ("0000:01:00.0",)),
        DeviceName("block/sdb", ("0000:ff:00.0",)),
    ),
)


@pytest.mark.parametrize(
    ("text", "places", "mems"),
    [
        ("numa/4", ("numa/4",), "4"),
        ("socket/1", ("socket/1",), "2-3"),
        ("net/ens1f0,net/ens1f0", ("net/ens1f0",), "1"),
        (" block/nvme0n1 ,\tnuma/0", ("block/nvme0n1", "numa/0"), "0-1,3"),
        ("pci/3B:00.0", ("pci/0000:3b:00.0",), "1"),
        ("pci/0001:AF:00.0", ("pci/0001:af:00.0",), "3"),
    ],
)
def test_places_are_on_numa_nodes(text: str, places: tuple[str, ...], mems: str) -> None:
    assert parse_places(text) == places
    assert numa_nodes_at(MACHINE, places) == MemSet.parse(mems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("net/nosuch", "there is no net/nosuch; there are net/ens1f0"),
        ("numa/04", "there is no numa/04; there are numa/0, numa/1, numa/2, numa/3, numa/4"),
        ("net/ENS1F0", "there is no net/ENS1F0"),
        ("block/sda", "the NUMA node of block/sda is unknown"),
        ("block/sdb", "the NUMA node of block/sdb is unknown"),
        ("numa/1,block/sda", "the NUMA node of block/sda is unknown"),
    ],
)
def test_what_a_machine_does_not_have_is_named(text: str, said: str) -> None:
    with pytest.raises(PlaceError, match=said):
        numa_nodes_at(MACHINE, parse_places(text))


def test_a_machine_that_reports_no_names_says_so() -> None:
    bare = Topology(MACHINE.cpus, MACHINE.numa_nodes)
    with pytest.raises(PlaceError, match="there is no net/eth0 and no other net/ either"):
        numa_nodes_at(bare, ("net/eth0",))


@pytest.mark.parametrize(
    "text",
    ["", ",", "eth0", "net/", "net", "net/a b", "gpu/0", "net/\u00e9", "net/x\ny", "n" * 513],
)
def test_a_text_that_is_no_list_of_places_is_an_error(text: str) -> None:
    with pytest.raises(PlaceError) as refused:
        parse_places(text)
    assert str(refused.value).isprintable()
