"""Devices as the kubelet lists them, grouped by the NUMA nodes that they are near. Does no I/O."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Final

from numapin_api.cpuset import MemSet
from numapin_api.hardware.limits import (
    DEVICE_ID_LENGTH,
    MAX_CONTAINER_DEVICES,
    MAX_DEVICE_IDS,
    MAX_DEVICE_ROWS,
)
from numapin_api.schema.plain import (
    ContainerDevices,
    DeviceCount,
    DevicesStatus,
    UnnamedDevices,
)
from numapin_api.topology import Topology

MOST_BYTES: Final = 384 << 10
"""Of the rows of pods, and as much of pods without a name: etcd takes 1.5 MiB for a report."""

ROW_BYTES: Final = 200
"""Of a row as JSON, besides names and ids."""

MOST_NUMA_NODES: Final = 1024
"""Of one device; the kubelet itself lists one of its NUMA nodes at a time."""

_RESOURCE: Final = re.compile(r"[A-Za-z0-9._/-]{1,317}", re.ASCII)
_CONTAINER: Final = re.compile(r"[a-z0-9.-]{1,253}", re.ASCII)

Entry = tuple[str, Iterable[str], Iterable[int]]
"""A resource, ids of its devices, and the NUMA nodes that all of them are near."""


@dataclass(frozen=True, slots=True)
class Places:
    """The NUMA nodes of a machine, and which of them its PCI functions are near, by address."""

    numa_nodes: frozenset[int] = frozenset()
    pci: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology) -> "Places":
        """Those of a machine as it was discovered."""
        near = {one.address: one.numa_node for one in topology.pci if one.numa_node is not None}
        return cls(frozenset(node.id for node in topology.numa_nodes), near)


@dataclass(frozen=True, slots=True, order=True)
class Devices:
    """Devices of one resource near the same NUMA nodes; `ids` are the first of them.

    `nodes` is empty if that is unknown.
    """

    resource: str
    nodes: tuple[int, ...]
    count: int
    ids: tuple[str, ...]


Rows = tuple[tuple[str, Devices], ...]
"""The devices of one pod, each with the name of its container."""


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Pods by UID, and devices by namespace and name of pods; which is which is not known."""

    uids: tuple[str, ...] = ()
    rows: Mapping[str, Rows] = field(default_factory=dict)


def grouped(entries: Iterable[Entry], places: Places) -> tuple[Devices, ...]:
    """The devices of a list by resource and NUMA nodes, in the order of these.

    The kubelet lists a device once for each of its NUMA nodes. One of which the plug-in names no
    NUMA node that the machine has, and whose id is a PCI address, is near the NUMA node of that
    function. A resource that has no name of Kubernetes is left out.

    Source: kubelet cm/container_manager.go, `containerDevicesFromResourceDeviceInstances`.
    """
    near: dict[tuple[str, str], frozenset[int]] = {}
    for resource, ids, numa_nodes in entries:
        if not _RESOURCE.fullmatch(resource):
            continue
        stated = places.numa_nodes.intersection(islice(numa_nodes, MOST_NUMA_NODES))
        for id_ in filter(None, ids):
            key = (resource, id_)
            near[key] = near[key] | stated if key in near else stated
    placed = sorted(
        (resource, tuple(sorted(nodes or _by_address(id_, places))), id_)
        for (resource, id_), nodes in near.items()
    )
    made = []
    for (resource, nodes), group in groupby(placed, key=lambda one: one[:2]):
        ids = [one[2] for one in group]
        shown = (
            one
            for one in ids
            if len(one) <= DEVICE_ID_LENGTH and one.isascii() and one.isprintable()
        )
        made.append(Devices(resource, nodes, len(ids), tuple(islice(shown, MAX_DEVICE_IDS))))
    return tuple(made)


def rows_of(containers: Iterable[tuple[str, Iterable[Entry]]], places: Places) -> Rows:
    """The devices of a pod; containers without a name of Kubernetes are left out."""
    return tuple(
        (name, one)
        for name, entries in containers
        if _CONTAINER.fullmatch(name)
        for one in grouped(entries, places)
    )


def located(devices: Iterable[Devices]) -> frozenset[str]:
    """The resources of which a device is near a known NUMA node."""
    return frozenset(one.resource for one in devices if one.nodes)


def status_of(
    resources: Iterable[Devices],
    pods: Mapping[str, Rows],
    unnamed: Unnamed = Unnamed(),
    message: str | None = None,
) -> DevicesStatus:
    """What a report says. Resources without any NUMA node are left out.

    Args:
        resources: all devices of the node.
        pods: what pods have, by UID; one whose rows have no room is left out as a whole.
        unnamed: what pods have whose names are not known.
        message: why this is old or missing; None if it is not.
    """
    of_pods = (*pods.values(), *unnamed.rows.values())
    given = tuple(one for rows in of_pods for _, one in rows)
    known = located((*resources, *given))
    counts = [
        DeviceCount(one.resource, one.count, MemSet(one.nodes))
        for one in resources
        if one.resource in known
    ]
    return DevicesStatus(
        message,
        tuple(counts[:MAX_DEVICE_ROWS]),
        tuple(
            ContainerDevices(uid, name, one.resource, one.count, MemSet(one.nodes), one.ids)
            for uid, name, one in _kept(pods, known, MAX_CONTAINER_DEVICES)
        ),
        tuple(
            _unnamed(pod, name, one)
            for pod, name, one in _kept(unnamed.rows, known, MAX_DEVICE_ROWS)
        ),
        unnamed.uids[:MAX_DEVICE_ROWS],
    )


def reported_before(reported: Mapping[str, Any]) -> tuple[tuple[Devices, ...], dict[str, Rows]]:
    """The devices of the node and of its pods, by UID, of which a report speaks; see `status_of`.

    Nothing, if it is not as a report must be.
    """
    try:
        resources = tuple(map(_reported, reported.get("resources", ())))
        pods: dict[str, Rows] = {}
        for one in reported.get("containers", ()):
            pods[one["podUID"]] = (*pods.get(one["podUID"], ()), (one["container"], _reported(one)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return (), {}
    return resources, pods


def _reported(row: Mapping[str, Any]) -> Devices:
    nodes = tuple(MemSet.parse(row["numaNodes"]))
    return Devices(row["resource"], nodes, row["count"], tuple(row.get("ids", ())))


def _by_address(id_: str, places: Places) -> tuple[int, ...]:
    node = places.pci.get(id_.lower())
    return (node,) if node is not None and node in places.numa_nodes else ()


def _unnamed(pod: str, container: str, one: Devices) -> UnnamedDevices:
    namespace, _, name = pod.partition("/")
    return UnnamedDevices(namespace, name, container, one.resource, one.count, MemSet(one.nodes))


def _kept(
    pods: Mapping[str, Rows], known: frozenset[str], most: int
) -> Iterator[tuple[str, str, Devices]]:
    """Pod, container and devices of each row of known resources; of a pod all, or none."""
    left, left_bytes = most, MOST_BYTES
    for pod, rows in sorted(pods.items()):
        kept = [(name, one) for name, one in rows if one.resource in known]
        texts = ((pod, name, one.resource, *one.ids) for name, one in kept)
        size = sum(ROW_BYTES + len("".join(each)) for each in texts)
        if len(kept) <= left and size <= left_bytes:
            left, left_bytes = left - len(kept), left_bytes - size
            yield from ((pod, name, one) for name, one in kept)
