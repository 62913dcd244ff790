"""The devices of ResourceClaims as devices that containers have.

The scheduler allocates them before it binds a pod, so the kubelet's Topology Manager, which takes
no hints from them, is not followed here: its rules for the devices of plug-ins are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from numapin_api.cpuset import MemSet
from numapin_api.hardware.limits import DEVICE_ID_LENGTH, MAX_DEVICE_IDS
from numapin_api.hardware.places import first_known
from numapin_api.schema.plain_assignment import ContainerDevices, DevicesStatus
from numapin_api.topology import Topology
from numapin_operator.placement.requests import ContainerView, PodView


def is_driver(resource: str) -> bool:
    """Whether devices are those of a DRA driver, and not of an extended resource.

    Source: Kubernetes v1.36, `IsExtendedResourceName`: such a resource has a slash.
    """
    return "/" not in resource


def with_claimed(
    status: DevicesStatus | None, pods: Iterable[PodView], topology: Topology
) -> DevicesStatus | None:
    """What the node reports, with the devices of claims; None if there is neither.

    Devices of which nothing is known have no row, and are missed.
    """
    claiming = [pod for pod in pods if any(one.claimed for one in pod.containers)]
    if not claiming:
        return status
    rows = [row for pod in claiming for one in pod.containers for row in _rows(pod, one, topology)]
    known = status or DevicesStatus()
    return replace(known, containers=(*known.containers, *rows))


def _rows(pod: PodView, container: ContainerView, topology: Topology) -> Iterator[ContainerDevices]:
    found: dict[tuple[str, MemSet], list[str]] = {}
    for device in container.claimed:
        if device.places is not None:
            near = first_known(topology, device.places)
            found.setdefault((device.driver, near), []).append(device.name)
    for (driver, near), names in found.items():
        ids = tuple(name[:DEVICE_ID_LENGTH] for name in names[:MAX_DEVICE_IDS])
        yield ContainerDevices(pod.uid, container.name, driver, len(names), near, ids)
