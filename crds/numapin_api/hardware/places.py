"""Places on a machine by name: `numa/1`, `socket/0`, `net/ens1f0`, `block/nvme0n1`, `pci/…`.

Does no I/O.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from numapin_api.cpuset import MemSet
from numapin_api.text import first_texts
from numapin_api.topology import Topology

KINDS: Final = ("numa", "socket", "net", "block", "pci")

LONGEST_TEXT: Final = 512
"""Characters of a list of places."""

_EXAMPLES: Final = "such as numa/1, socket/0, net/ens1f0, block/nvme0n1 or pci/0000:3b:00.0"
_PLACE = re.compile(rf"({'|'.join(KINDS)})/([!-~]{{1,32}})", re.ASCII)
_SHORT_ADDRESS = re.compile(r"pci/[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_SHOWN: Final = 8

_Known = Mapping[str, MemSet]
"""The NUMA nodes of each place; none for a device of which they are unknown."""

_KNOWN: Final[WeakKeyDictionary[Topology, _Known]] = WeakKeyDictionary()


class Near(NamedTuple):
    """What the annotations of a pod say; a text is empty if there is no annotation."""

    required: str
    preferred: str


class ClaimedDevice(NamedTuple):
    """A device that a container has by a ResourceClaim.

    `name` is that of its pool and its own. `places` are those that its driver names, the most
    reliable first; None if nothing is known of the device.
    """

    driver: str
    name: str
    places: tuple[str, ...] | None


class PlaceError(ValueError):
    """A text names no place, or none that the machine has; the error says what would."""


def parse_places(text: str) -> tuple[str, ...]:
    """The places of a list that is separated by commas; each is written as `numa_nodes_at` has it.

    Raises:
        PlaceError: it is not such a list.
    """
    if len(text) > LONGEST_TEXT:
        raise PlaceError(f"is longer than {LONGEST_TEXT} characters")
    return tuple(dict.fromkeys(_parse_place(one.strip()) for one in text.split(",")))


def _parse_place(text: str) -> str:
    if not _PLACE.fullmatch(text):
        raise PlaceError(f"{text[:40]!r} is not a place: write a list of places {_EXAMPLES}")
    lower = text.lower()
    if _SHORT_ADDRESS.fullmatch(lower):
        return lower.replace("/", "/0000:")
    return lower if text.startswith("pci/") else text


def numa_nodes_at(topology: Topology, places: Iterable[str]) -> MemSet:
    """The NUMA nodes that places are on, all taken together.

    Args:
        topology: the machine.
        places: as `parse_places` returns them.

    Raises:
        PlaceError: the machine does not have one of them, or its NUMA node is unknown.
    """
    known = _KNOWN.get(topology)
    if known is None:
        known = _KNOWN[topology] = _read(topology)
    found = MemSet()
    for place in places:
        at = known.get(place)
        if at is None:
            raise PlaceError(f"there is no {place}{_has(place, known)}")
        if not at:
            raise PlaceError(f"the NUMA node of {place} is unknown")
        found |= at
    return found


def first_known(topology: Topology, places: Iterable[str]) -> MemSet:
    """The NUMA nodes of the first place of which the machine knows them; none if of none."""
    for place in places:
        with suppress(PlaceError):
            return numa_nodes_at(topology, (place,))
    return MemSet()


def _read(topology: Topology) -> _Known:
    of_cpu = {cpu.id: cpu.numa_node for cpu in topology.cpus}
    of_pci = {
        one.address: MemSet() if one.numa_node is None else MemSet((one.numa_node,))
        for one in topology.pci
    }
    found = {f"numa/{one.id}": MemSet((one.id,)) for one in topology.numa_nodes}
    for socket, cpus in topology.socket_cpus.items():
        found[f"socket/{socket}"] = MemSet(of_cpu[cpu] for cpu in cpus)
    for device in topology.names:
        found[device.name] = MemSet.union(of_pci.get(one, MemSet()) for one in device.pci)
    found |= {f"pci/{address}": at for address, at in of_pci.items()}
    return found | {f"pci/{root.name}": root.numa_nodes for root in topology.pci_roots}


def _has(place: str, known: Iterable[str]) -> str:
    kind = place.partition("/")[0]
    there = [one for one in known if one.startswith(f"{kind}/")]
    return f"; there are {first_texts(there, _SHOWN)}" if there else f" and no other {kind}/ either"
