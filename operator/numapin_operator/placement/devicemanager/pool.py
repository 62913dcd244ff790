"""The devices of a machine, and which of them are in use."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from numapin_operator.placement.allocations import DeviceGrant
from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.topologymanager.device_hints import DeviceCounts


class Device(NamedTuple):
    """One device of a plug-in; `numa_nodes` are those that it is near, none if that is unknown."""

    id: str
    numa_nodes: NumaMask = NO_NUMA_NODES
    healthy: bool = True


Devices = Mapping[str, tuple[Device, ...]]
"""The devices of a machine by resource; each has another id among those of its resource."""

NO_DEVICES: Final[Devices] = MappingProxyType({})


class DevicePool:
    """The devices of a machine, with those in use."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._taken: dict[str, set[str]] = {}

    def copy(self) -> "DevicePool":
        """A copy that can be changed independently."""
        made = DevicePool(self._devices)
        made._taken = {resource: set(ids) for resource, ids in self._taken.items()}
        return made

    def has(self, resource: str) -> bool:
        """Whether a plug-in has registered this resource."""
        return resource in self._devices

    def serves(self, pod: PodView) -> bool:
        """Whether a pod asks for any of these resources."""
        return any(self.has(name) for one in pod.containers for name, _ in one.devices)

    def healthy(self, resource: str) -> list[Device]:
        """The devices that work, those in use among them."""
        return [one for one in self._devices[resource] if one.healthy]

    def free(self, resource: str) -> list[Device]:
        """The devices that can be given, in the order of the plug-in."""
        taken = self._taken.get(resource, ())
        return [one for one in self.healthy(resource) if one.id not in taken]

    def there(self, resource: str) -> DeviceCounts:
        """All devices, also the unhealthy ones."""
        return counts(self._devices[resource])

    def claim(self, grants: Iterable[DeviceGrant]) -> None:
        """Take devices."""
        for resource, ids in grants:
            self._taken.setdefault(resource, set()).update(ids)

    def release(self, grants: Iterable[DeviceGrant]) -> None:
        """Return devices."""
        for resource, ids in grants:
            self._taken.get(resource, set()).difference_update(ids)


def counts(devices: Iterable[Device]) -> DeviceCounts:
    """How many of the devices are near the same NUMA nodes."""
    return Counter(one.numa_nodes for one in devices)
