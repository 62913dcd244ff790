"""The sets of NUMA nodes that devices of one resource could come from.

Source: Kubernetes v1.36, devicemanager, `generateDeviceTopologyHints`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.hints import NOWHERE, Impossible
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch, Weights

DeviceCounts = Mapping[NumaMask, int]
"""How many devices are near the same NUMA nodes; those near none are under the empty mask."""


class DeviceHints(NamedTuple):
    """Where so many devices of one resource could come from.

    A set of these NUMA nodes is sufficient if it touches each set of `reusable`, which are the NUMA
    nodes of devices that init containers leave, and if with these `wanted` devices are near it. It
    is preferred if it has `fewest` nodes, the least that the machine needs with no device in use.
    """

    resource: str
    wanted: int
    numa_nodes: NumaMask
    free: DeviceCounts
    reusable: tuple[NumaMask, ...]
    fewest: int

    @property
    def near(self) -> NumaMask:
        """The NUMA nodes of the devices that can be given."""
        joined = NO_NUMA_NODES
        for numa_nodes in self.free:
            joined |= numa_nodes
        return joined

    @property
    def needs(self) -> tuple[tuple[Weights, int], ...]:
        """What a set must hold at least: a device near two NUMA nodes counts for both here."""
        missing = self.wanted - len(self.reusable)
        return ((_weights(self.numa_nodes, self.free), missing),) if missing > 0 else ()

    def suffices(self, numa_nodes: NumaMask) -> bool:
        """True if the devices can come from this set."""
        if not numa_nodes or numa_nodes & ~self.numa_nodes:
            return False
        touched = all(near & numa_nodes for near in self.reusable)
        return touched and _near(numa_nodes, self.free) + len(self.reusable) >= self.wanted

    def prefers(self, numa_nodes: NumaMask) -> bool:
        """True if this set is a preferred one."""
        return numa_nodes.bit_count() == self.fewest and self.suffices(numa_nodes)

    def singles(self) -> NumaMask:
        """Every single NUMA node that is preferred."""
        if self.fewest > 1:
            return NO_NUMA_NODES
        return numa_mask(one for one in members(self.numa_nodes) if self.suffices(_single(one)))

    def smallest(self) -> int:
        """The size of the smallest sufficient sets."""
        listed = tuple(members(self.numa_nodes))
        return SubsetSearch(listed, self.needs, accept=self.suffices).smallest().bit_count()


class DeviceRequest(NamedTuple):
    """So many devices of a resource; `reusable` are the NUMA nodes of each that is left over."""

    resource: str
    wanted: int
    reusable: tuple[NumaMask, ...] = ()


def device_hints(
    request: DeviceRequest, there: DeviceCounts, free: DeviceCounts, everywhere: NumaMask
) -> DeviceHints | Impossible | None:
    """Where devices could come from; None if no device of the resource is near NUMA nodes.

    Args:
        request: what is asked for.
        there: all devices of the resource, also those in use and the unhealthy ones.
        free: those that can be given.
        everywhere: the NUMA nodes of the machine.
    """
    if not any(there):
        return None
    with_devices = NO_NUMA_NODES
    for near in there:
        with_devices |= near & everywhere
    numa_nodes = with_devices or everywhere
    found = DeviceHints(
        resource=request.resource,
        wanted=request.wanted,
        numa_nodes=numa_nodes,
        free=free,
        reusable=tuple(near for near in request.reusable if near),
        fewest=fewest_numa_nodes(request, there, numa_nodes),
    )
    return found if found.suffices(numa_nodes) else NOWHERE


def fewest_numa_nodes(request: DeviceRequest, there: DeviceCounts, numa_nodes: NumaMask) -> int:
    """How many NUMA nodes the request needs with no device in use; all if these do not suffice."""
    empty = DeviceHints(request.resource, request.wanted, numa_nodes, there, (), 0)
    return empty.smallest() or numa_nodes.bit_count()


def _weights(numa_nodes: NumaMask, counts: DeviceCounts) -> Weights:
    return {one: _near(_single(one), counts) for one in members(numa_nodes)}


def _near(numa_nodes: NumaMask, counts: DeviceCounts) -> int:
    return sum(count for near, count in counts.items() if near & numa_nodes)


def _single(numa_node: int) -> NumaMask:
    return NumaMask(1 << numa_node)
