import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.machine_file import (
    MachineFormatError,
    format_machine,
    machine_document,
    parse_machine,
)
from numapin_api.topology import (
    Cpu,
    NumaNode,
    PciDevice,
    Topology,
    default_distances,
    page_size_bytes,
    page_size_name,
)


def _document(**changed: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "cpus": [[0, 0, 0, -1, 0], [1, 1, 1, 7, 4], [2, 0, 0, -1, 0], [3, 1, 1, 7, 4]],
        "numaNodes": [
            {"id": 4, "memoryBytes": 8192, "hugepages": {"2Mi": 3}, "distances": [10, 32]},
            {"id": 0, "memoryBytes": 4096, "hugepages": {}, "distances": [21, 10]},
        ],
    }
    return base | changed


def _parse(document: Any) -> Topology:
    return parse_machine(json.dumps(document), "m.json")


def test_rows_and_distances_are_put_in_ascending_order() -> None:
    parsed = _parse(_document(offlineCPUs="8-9", isolatedCPUs="1,3"))
    assert [cpu.id for cpu in parsed.cpus] == [0, 1, 2, 3]
    assert parsed.numa_nodes == (
        NumaNode(0, 4096, {}, (10, 21)),
        NumaNode(4, 8192, {"2Mi": 3}, (32, 10)),
    )
    assert (str(parsed.offline), str(parsed.isolated)) == ("8-9", "1,3")


def test_unknown_distances_are_the_kernels_defaults() -> None:
    bare = [{"id": 0, "memoryBytes": 1}, {"id": 4, "memoryBytes": 1}]
    assert [n.distances for n in _parse(_document(numaNodes=bare)).numa_nodes] == [
        (10, 20),
        (20, 10),
    ]


NODE = {"id": 0, "memoryBytes": 1}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (_document(cpus=[]), "m.json: cpus: "),
        (_document(cpus=[[0, 0, 0, -1]]), "m.json: cpus[0][4]: is missing"),
        (_document(cpus=[[0, 0, "a", -1, 0]]), "m.json: cpus[0][2]: input should be a valid int"),
        (_document(cpus=[[0, 0, 0, -2, 0]]), "m.json: cpus[0][3]: input should be greater"),
        (_document(cpus=[[0, 0, 0, 0, 0]] * 2), "m.json: cpus[1]: CPU 0 has a row already"),
        (_document(cpus=[[1, 5, 0, 0, 0]]), "m.json: cpus[0]: core 5 is not the lowest CPU of"),
        (_document(cpus=[[1, 1, 0, 0, 3]]), "m.json: cpus[0]: NUMA node 3 is not in numaNodes"),
        (_document(offlineCPUs="3"), "m.json: cpus[3]: CPU 3 is in offlineCPUs too"),
        (_document(offlineCPUs="3-1"), "m.json: offlineCPUs: '3-1' is not a list of ids"),
        (_document(memory=3), "m.json: memory: there is no such field; remove it"),
        (_document(numaNodes=[{"id": 0}]), "m.json: numaNodes[0].memoryBytes: is missing"),
        (
            _document(numaNodes=[NODE | {"hugepages": {"2MB": 1}}]),
            "m.json: numaNodes[0].hugepages: '2MB' is not a page size; write it like 2Mi",
        ),
        (
            _document(cpus=[[0, 0, 0, 0, 0]], numaNodes=[NODE | {"distances": [10, 20]}]),
            "m.json: numaNodes[0].distances: 2 values for 1 NUMA nodes",
        ),
        (
            _document(cpus=[[0, 0, 0, 0, 0]], numaNodes=[NODE, NODE]),
            "m.json: numaNodes[1].id: NUMA node 0 is listed already",
        ),
        ([1], "m.json: input should be an object"),
    ],
)
def test_bad_machine_is_refused_with_the_place(document: Any, message: str) -> None:
    with pytest.raises(MachineFormatError) as refused:
        _parse(document)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("text", ["", "{", "\0", b"\xff\xfe"])
def test_text_that_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(MachineFormatError, match=r"m\.json: .*JSON"):
        parse_machine(text, "m.json")


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    mems = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=5)))
    ids = sorted(draw(st.sets(st.integers(0, 4095), min_size=1, max_size=24)))
    cpus: list[Cpu] = []
    for one in ids:
        joined = draw(st.sampled_from([None, *(cpu for cpu in cpus if cpu.id == cpu.core)]))
        core = joined.core if joined else one
        cpus.append(
            Cpu(
                one,
                core,
                draw(st.integers(0, 9)),
                draw(st.integers(-1, 9)),
                draw(st.sampled_from(mems)),
            )
        )
    nodes = tuple(
        NumaNode(
            mem,
            draw(st.integers(0, 1 << 45)),
            draw(st.dictionaries(st.sampled_from(["64Ki", "2Mi", "1Gi"]), st.integers(1, 99))),
            row,
            draw(st.booleans()),
        )
        for mem, row in zip(mems, default_distances(len(mems)), strict=True)
    )
    offline = CpuSet(draw(st.sets(st.integers(4096, 4200))))
    pci = (PciDevice("0000:17:00.0", "0604", draw(st.sampled_from([None, *mems]))),)
    return Topology(tuple(cpus), nodes, offline, CpuSet(ids[:1]), pci)


@given(topologies())
def test_a_machine_comes_back_as_it_was_written(topology: Topology) -> None:
    text = format_machine(topology)
    assert parse_machine(text, "again") == topology
    assert json.loads(text) == machine_document(topology)


def test_sizes_without_pages_are_left_out() -> None:
    node = NumaNode(0, 1, {"2Mi": 0, "1Gi": 2}, (10,))
    document = machine_document(Topology((Cpu(0, 0, 0, 0, 0),), (node,)))
    assert document["numaNodes"][0]["hugepages"] == {"1Gi": 2}


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (64 << 10, "64Ki"),
        (1 << 20, "1Mi"),
        (2 << 20, "2Mi"),
        (512 << 20, "512Mi"),
        (1 << 30, "1Gi"),
        (16 << 30, "16Gi"),
        (1000, "1000"),
        (3 << 50, "3072Ti"),
    ],
)
def test_page_sizes_have_the_names_of_kubernetes(size: int, name: str) -> None:
    assert page_size_name(size) == name
    assert page_size_bytes(name) == size


@pytest.mark.parametrize("name", ["", "Mi", "2M", "0Mi", "-2Mi", "2MiMi", "2 Mi", "²Mi", "2iM"])
def test_what_is_no_page_size_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="write it like 2Mi"):
        page_size_bytes(name)
