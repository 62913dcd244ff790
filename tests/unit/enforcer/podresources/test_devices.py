"""Devices as values: whatever a kubelet lists, a report is within its bounds and says the truth."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import MemSet
from numapin_api.hardware.limits import (
    MAX_CONTAINER_DEVICES,
    MAX_DEVICE_IDS,
    MAX_DEVICE_ROWS,
)
from numapin_api.schema.assignment_status import STATUS_SCHEMA
from numapin_api.schema.plain import ContainerDevices, DeviceCount, DevicesStatus, UnnamedDevices
from numapin_api.status import devices as contract
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, PciDevice, Topology
from numapin_enforcer.podresources.devices import (
    Devices,
    Entry,
    Places,
    Unnamed,
    grouped,
    reported_before,
    rows_of,
    status_of,
)

GPU, NIC = "example.com/gpu", "example.com/nic"
MACHINE = Topology(
    cpus=(Cpu(0, 0, 0, NO_CACHE, 0),),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
    pci=(
        PciDevice("0000:3b:00.0", "0200", 1),
        PciDevice("0000:3c:00.0", "0200", None),
        PciDevice("0000:3d:00.0", "0200", 7),
    ),
)
PLACES = Places.of(MACHINE)


def test_devices_are_grouped_by_the_numa_nodes_that_they_are_near() -> None:
    listed: list[Entry] = [(GPU, ["g2"], [0]), (GPU, ["g1"], [0]), (GPU, ["g3"], [1])]
    assert grouped(listed, PLACES) == (
        Devices(GPU, (0,), 2, ("g1", "g2")),
        Devices(GPU, (1,), 1, ("g3",)),
    )


def test_a_device_with_two_numa_nodes_is_listed_twice_and_is_one() -> None:
    listed: list[Entry] = [(GPU, ["g1"], [1]), (GPU, ["g1"], [0])]
    assert grouped(listed, PLACES) == (Devices(GPU, (0, 1), 1, ("g1",)),)


HOSTILE: dict[str, tuple[Entry, tuple[int, ...], int]] = {
    "a negative NUMA node": ((GPU, ["g"], [-1]), (), 1),
    "a giant NUMA node": ((GPU, ["g"], [1 << 62]), (), 1),
    "a NUMA node that the machine lacks": ((GPU, ["g"], [0, 5]), (0,), 1),
    "many NUMA nodes": ((GPU, ["g"], range(1 << 40)), (0, 1), 1),
    "an id twice": ((GPU, ["g", "g"], [1]), (1,), 1),
    "an empty id": ((GPU, ["", "g"], [1]), (1,), 1),
    "a long id": ((GPU, ["g" * 129], [1]), (1,), 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_is_left_out_and_the_rest_counts(name: str) -> None:
    entry, nodes, count = HOSTILE[name]
    (found,) = grouped([entry], PLACES)
    assert (found.nodes, found.count) == (nodes, count)
    assert all(0 < len(one) <= 128 for one in found.ids)


@pytest.mark.parametrize("name", ["", "a b", "x" * 318, "é.example.com/gpu", "a\n"])
def test_a_resource_without_a_name_of_kubernetes_is_left_out(name: str) -> None:
    assert grouped([(name, ["g"], [0])], PLACES) == ()


@pytest.mark.parametrize("name", ["", "A", "x" * 254, "a/b"])
def test_a_container_without_a_name_of_kubernetes_is_left_out(name: str) -> None:
    assert rows_of([(name, [(GPU, ["g"], [0])])], PLACES) == ()


@pytest.mark.parametrize(
    ("id_", "stated", "nodes"),
    [
        ("0000:3b:00.0", [], (1,)),
        ("0000:3B:00.0", [], (1,)),
        ("0000:3b:00.0", [9], (1,)),
        ("0000:3b:00.0", [0], (0,)),
        ("0000:3c:00.0", [], ()),
        ("0000:3d:00.0", [], ()),
        ("3b:00.0", [], ()),
    ],
    ids=["known", "capitals", "wrong node", "stated", "unknown node", "no such node", "no address"],
)
def test_a_pci_address_gives_the_numa_node_that_the_plugin_does_not(
    id_: str, stated: list[int], nodes: tuple[int, ...]
) -> None:
    (found,) = grouped([(NIC, [id_], stated)], PLACES)
    assert found.nodes == nodes


def test_resources_without_any_numa_node_are_not_reported() -> None:
    kvm = Devices("devices.kubevirt.io/kvm", (), 1000, ("kvm0",))
    gpus = (Devices(GPU, (), 1, ("g0",)), Devices(GPU, (1,), 1, ("g1",)))
    rows = {"u": (("c", kvm), ("c", gpus[1]))}
    assert status_of((kvm, *gpus), rows) == DevicesStatus(
        None,
        (DeviceCount(GPU, 1), DeviceCount(GPU, 1, MemSet((1,)))),
        (ContainerDevices("u", "c", GPU, 1, MemSet((1,)), ("g1",)),),
    )


def test_pods_without_a_name_are_reported_beside_what_they_have_together() -> None:
    gpu = Devices(GPU, (1,), 1, ("g1",))
    found = status_of([gpu], {}, Unnamed(("u1", "u2"), {"d/a": (("c", gpu),)}))
    assert found.unnamed == (UnnamedDevices("d", "a", "c", GPU, 1, MemSet((1,))),)
    assert found.unnamed_pods == ("u1", "u2")
    assert contract.DevicesStatus.model_validate(found.to_wire()).unnamed[0].pod == "a"


def test_a_pod_keeps_its_rows_when_no_device_is_healthy_any_more() -> None:
    found = status_of((), {"u": (("c", Devices(GPU, (1,), 1, ("g1",))),)})
    assert [one.pod_uid for one in found.containers] == ["u"]
    assert found.resources == ()


def test_the_bounds_are_those_of_the_contract() -> None:
    lists = STATUS_SCHEMA["properties"]["devices"]["properties"]
    assert (
        lists["resources"]["maxItems"],
        lists["containers"]["maxItems"],
    ) == (MAX_DEVICE_ROWS, MAX_CONTAINER_DEVICES)
    ids = lists["containers"]["items"]["properties"]["ids"]
    assert ids["maxItems"] == MAX_DEVICE_IDS


def test_too_many_rows_are_cut_and_a_pod_is_shown_whole_or_not_at_all() -> None:
    resources = [
        Devices(f"example.com/r{one:04}", (0,), 1, ()) for one in range(MAX_DEVICE_ROWS + 1)
    ]
    rows = tuple((f"c{one}", resources[0]) for one in range(300))
    found = status_of(resources, {f"u{one}": rows for one in range(4)})
    assert len(found.resources) == MAX_DEVICE_ROWS
    assert {one.pod_uid for one in found.containers} == {"u0", "u1", "u2"}
    assert len(found.containers) == 900


def test_a_report_is_small_enough_for_etcd_however_long_the_names_are() -> None:
    long = Devices("r" * 317, (0,), 8, tuple(f"{one}" + "i" * 127 for one in range(8)))
    rows = {f"{one:064}": (("c" * 253, long),) for one in range(MAX_CONTAINER_DEVICES)}
    late = {f"{'n' * 63}/{one:0253}": has for one, has in enumerate(rows.values())}
    found = status_of([long] * MAX_DEVICE_ROWS, rows, Unnamed(tuple(rows), late))
    assert len(json.dumps(found.to_wire())) < 1 << 20
    assert len(found.containers) > 150
    assert len(found.unnamed) > 150


ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(), st.text(max_size=3), st.lists(st.none(), max_size=2)
)


@given(st.dictionaries(st.sampled_from(["resources", "containers"]), st.lists(ODD, max_size=2)))
def test_a_report_that_is_not_as_it_must_be_is_as_none(reported: dict[str, Any]) -> None:
    assert reported_before(reported) == ((), {}) or not any(reported.values())


def test_what_was_reported_is_read_back() -> None:
    gpu = Devices(GPU, (0, 1), 2, ("g1", "g2"))
    status = status_of([gpu], {"u": (("a", gpu), ("b", gpu))}, message="late")
    resources, pods = reported_before(status.to_wire())
    assert status_of(resources, pods, message="late") == status


LISTS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([GPU, NIC]), st.text(max_size=4)),
        st.lists(st.one_of(st.sampled_from(["a", "b", "0000:3b:00.0"]), st.text(max_size=130))),
        st.lists(st.integers(-2, 3) | st.integers()),
    )
)


@given(LISTS)
def test_every_list_gives_a_report_that_the_contract_allows(listed: list[Entry]) -> None:
    made = grouped(listed, PLACES)
    found = status_of(made, {"u": tuple(("c", one) for one in made)})
    read = contract.DevicesStatus.model_validate(found.to_wire())
    assert sum(one.count for one in read.resources) == sum(one.count for one in read.containers)
    assert made == grouped(list(reversed(listed)), PLACES)
