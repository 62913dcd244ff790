"""Where devices are, by the ResourceSlices of their drivers."""

from typing import Any

import pytest

from numapin_operator.observe.resource_slices import DeviceId, PublishedDevices

DRIVER = "gpu.example.com"
GPU = DeviceId(DRIVER, "node-1", "gpu-0")
NUMA, BUS, ROOT = (
    f"resource.kubernetes.io/{name}" for name in ("numaNode", "pciBusID", "pcieRoot")
)


def slice_of(
    attributes: Any = None, generation: Any = 1, device: str = "gpu-0", **spec: Any
) -> dict[str, Any]:
    pool = {"name": "node-1", "generation": generation, "resourceSliceCount": 1}
    devices = [{"name": device, "attributes": attributes or {}}]
    return {"spec": {"driver": DRIVER, "pool": pool, "devices": devices} | spec}


def places(*bodies: dict[str, Any]) -> tuple[str, ...] | None:
    published = PublishedDevices([GPU])
    for body in bodies:
        published.take_in(body)
    return published.places.get(GPU)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({NUMA: {"int": 1}}, ["numa/1"], id="standard"),
        pytest.param({NUMA: {"ints": [5, 4, 6]}}, ["numa/5"], id="its own comes first"),
        pytest.param({NUMA: {"int": -1}}, [], id="no NUMA node"),
        pytest.param({NUMA: {"int": 1 << 40}}, [], id="more than there can be"),
        pytest.param({NUMA: {"int": True}}, [], id="a truth"),
        pytest.param({NUMA: {"string": "1"}}, [], id="a text"),
        pytest.param({NUMA: {"ints": []}}, [], id="no number"),
        pytest.param({NUMA: 1}, [], id="no attribute"),
        pytest.param({BUS: {"string": "0000:3B:00.0"}}, ["pci/0000:3b:00.0"], id="an address"),
        pytest.param({ROOT: {"string": "pci0000:3a"}}, ["pci/pci0000:3a"], id="a root"),
        pytest.param({ROOT: {"string": "../../etc"}}, [], id="no root"),
        pytest.param({"numaNode": {"int": 1}}, ["numa/1"], id="the driver's, unqualified"),
        pytest.param({f"{DRIVER}/numaNodeID": {"int": 0}}, ["numa/0"], id="the driver's"),
        pytest.param({"dra.net/numaNode": {"int": 1}}, [], id="another driver's"),
        pytest.param({"numaNodes": {"int": 1}}, [], id="another name"),
        pytest.param(
            {
                "numaNode": {"int": 0},
                ROOT: {"string": "pci0000:3a"},
                BUS: {"string": "0000:3b:00.0"},
                NUMA: {"int": 1},
            },
            ["numa/1", "pci/0000:3b:00.0", "pci/pci0000:3a", "numa/0"],
            id="standard ones first",
        ),
        pytest.param([NUMA], [], id="a list"),
    ],
)
def test_places(attributes: Any, expected: list[str]) -> None:
    assert places(slice_of(attributes)) == tuple(expected)


ON_0, ON_1 = {NUMA: {"int": 0}}, {NUMA: {"int": 1}}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        pytest.param([slice_of(ON_0, 1), slice_of(ON_1, 2)], ("numa/1",), id="newer"),
        pytest.param([slice_of(ON_1, 2), slice_of(ON_0, 1)], ("numa/1",), id="older comes last"),
        pytest.param([slice_of(ON_0, 1), slice_of(ON_1, 2, "gpu-9")], None, id="gone since"),
        pytest.param([slice_of(ON_1, 2, "gpu-9"), slice_of(ON_0, 1)], None, id="gone, older last"),
        pytest.param(
            [slice_of(ON_0), slice_of(ON_1, 1, "gpu-9")], ("numa/0",), id="several slices"
        ),
        pytest.param([slice_of(ON_0, driver="other")], None, id="another driver"),
        pytest.param([slice_of(ON_0, pool={"name": "x", "generation": 1})], None, id="other pool"),
        pytest.param([], None, id="nothing"),
    ],
)
def test_generations_of_a_pool(
    bodies: list[dict[str, Any]], expected: tuple[str, ...] | None
) -> None:
    assert places(*bodies) == expected


@pytest.mark.parametrize("nonsense", [None, 1, "x", [], [1], {"name": []}, [{"name": ["x"]}]])
@pytest.mark.parametrize("field", ["driver", "pool", "devices"])
def test_nonsense_is_no_slice(field: str, nonsense: Any) -> None:
    assert places(slice_of(ON_0) | {"spec": nonsense}) is None
    body = slice_of(ON_1)
    body["spec"][field] = nonsense
    assert places(body, slice_of(ON_0)) == ("numa/0",)


@pytest.mark.parametrize(
    "changed",
    [
        {"driver": "a,spec.nodeName=other"},
        {"driver": ""},
        {"driver": "example.com/gpu"},
        {"driver": None},
        {"pool": 1},
        {"device": "a\n"},
        {"device": "x" * 300},
    ],
)
def test_an_allocation_that_cannot_be_one_is_no_device(changed: dict[str, Any]) -> None:
    result = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    assert DeviceId.decode(result) == GPU
    assert DeviceId.decode(result | changed) is None
