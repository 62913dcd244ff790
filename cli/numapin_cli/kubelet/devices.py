"""The devices that a kubelet whose managers are off for CPUs and memory gives to pods.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_operator.placement import (
    ContainerKind,
    Device,
    Devices,
    Node,
    NodePolicy,
    PodAllocation,
    PodView,
)


class KubeletDevices:
    """Gives devices to pods by hints of the devices alone, under the topology policy and scope.

    So it is on a node that numapin serves if the kubelet's `topologyManagerPolicy` is the same.
    """

    def __init__(self, policy: NodePolicy, devices: Devices) -> None:
        self._node, self._devices = Node(policy, devices), devices
        self._near = {
            (name, one.id): MemSet.from_mask(one.numa_nodes)
            for name, each in devices.items()
            for one in each
        }
        self._init: dict[str, frozenset[str]] = {}

    def admit(self, pod: PodView) -> PodAllocation:
        """Give a pod its devices.

        Raises:
            PlacementError: the kubelet refuses the pod for them.
        """
        init = (one.name for one in pod.containers if one.kind is ContainerKind.INIT)
        self._init[pod.uid] = frozenset(init)
        return self._node.place(replace(pod, selected=False))

    def release(self, uid: str) -> None:
        """Take the devices of a pod back; nothing happens if it has none."""
        self._node.release(uid)

    def reported(self) -> DevicesStatus:
        """What an enforcer reports of them. The kubelet lists no ordinary init container."""
        return DevicesStatus(None, tuple(self._resources()), tuple(self._rows()))

    def _resources(self) -> Iterator[DeviceCount]:
        for name, each in self._devices.items():
            if any(one.numa_nodes for one in each):
                yield from (_count(name, one) for one in each if one.healthy)

    def _rows(self) -> Iterator[ContainerDevices]:
        for given in self._node.allocations.values():
            for one in given.containers:
                for grant in one.devices if one.name not in self._init[given.uid] else ():
                    for each in grant.ids:
                        near = self._near[grant.resource, each]
                        yield ContainerDevices(
                            given.uid, one.name, grant.resource, 1, near, (each,)
                        )


def _count(resource: str, device: Device) -> DeviceCount:
    return DeviceCount(resource, 1, MemSet.from_mask(device.numa_nodes))


def devices_of(given: PodAllocation) -> dict[str, dict[str, list[str]]]:
    """The ids of each container's devices, by resource; containers without any are left out."""
    return {
        one.name: {grant.resource: list(grant.ids) for grant in one.devices}
        for one in given.containers
        if one.devices
    }
