"""What the ResourceSlices of DRA drivers say of where devices are.

Source: Kubernetes v1.36, api/resource/v1, `ResourceSliceSpec`; its documentation, "Standard Device
Attributes for Dynamic Resource Allocation". Does no I/O.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from sys import intern
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from numapin_api.cpuset import MAX_NUMA_NODE
from numapin_operator.observe.node_status import json_objects

STANDARD: Final = "resource.kubernetes.io/"

_OWN_NAMES: Final = ("numaNode", "numaNodeID")
"""How drivers have called the attribute before it had a standard name, such as dra.net/numaNode."""

_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9./-]{0,251}[a-zA-Z0-9])?", re.ASCII)
"""A driver, pool or device. What is none never gets into a selector."""

_PCI_TEXT = re.compile(r"[0-9a-zA-Z:.]{1,32}", re.ASCII)


class DeviceId(NamedTuple):
    """What tells a device from all others."""

    driver: str
    pool: str
    device: str

    @classmethod
    def decode(cls, result: Mapping[str, Any]) -> "DeviceId | None":
        """The device of an allocation; None if that cannot be one."""
        names = [result.get(one) for one in ("driver", "pool", "device")]
        found = [one for one in names if isinstance(one, str) and _NAME.fullmatch(one)]
        if len(found) < len(names) or "/" in found[0]:
            return None
        return cls(*map(intern, found))


Places = Mapping[DeviceId, tuple[str, ...]]
"""The places that drivers name of devices, as `first_known` takes them."""

NO_PLACES: Final[Places] = MappingProxyType({})


class PublishedDevices:
    """Some devices, as the ResourceSlices of their drivers describe them.

    Of each pool only the newest generation counts: slices of an older one are about to be replaced.
    """

    def __init__(self, wanted: Collection[DeviceId]) -> None:
        self._wanted = frozenset(wanted)
        self._pools: dict[tuple[str, str], tuple[int, dict[DeviceId, tuple[str, ...]]]] = {}

    @property
    def places(self) -> Places:
        """The places of each device that has been found."""
        return {one: at for _, found in self._pools.values() for one, at in found.items()}

    def take_in(self, body: Mapping[str, Any]) -> None:
        """Take in a ResourceSlice; one that cannot be read has no devices."""
        spec = _object(body.get("spec"))
        driver, pool = spec.get("driver"), _object(spec.get("pool"))
        name, generation = pool.get("name"), _number(pool.get("generation"))
        if not isinstance(driver, str) or not isinstance(name, str) or generation is None:
            return
        newest, found = self._pools.get((driver, name), (generation, {}))
        if generation < newest:
            return
        found = found if generation == newest else {}
        for device in json_objects(spec.get("devices")):
            one = DeviceId(driver, name, str(device.get("name")))
            if one in self._wanted:
                found[one] = tuple(dict.fromkeys(_places(driver, device)))
        self._pools[driver, name] = (generation, found)


def _places(driver: str, device: Mapping[str, Any]) -> Iterator[str]:
    """What says where a device is: what has a standard meaning first."""
    attributes = _object(device.get("attributes"))
    if (node := _numa_node(attributes.get(f"{STANDARD}numaNode"))) is not None:
        yield f"numa/{node}"
    for name in ("pciBusID", "pcieRoot"):
        text = _object(attributes.get(f"{STANDARD}{name}")).get("string")
        if isinstance(text, str) and _PCI_TEXT.fullmatch(text):
            yield f"pci/{text.lower()}"
    for name in sorted(attributes):
        domain, _, own = name.rpartition("/")
        if own in _OWN_NAMES and domain in ("", driver):
            node = _numa_node(attributes[name])
            if node is not None:
                yield f"numa/{node}"


def _numa_node(attribute: object) -> int | None:
    """A NUMA node, or the first of several: the device's own, before those at the same distance."""
    listed = _object(attribute).get("ints")
    first = listed[0] if isinstance(listed, list) and listed else None
    value = _number(_object(attribute).get("int", first))
    return value if value is not None and 0 <= value <= MAX_NUMA_NODE else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
