"""One pod's devices while it is placed. Source: Kubernetes v1.36, devicemanager."""

from collections.abc import Iterator

from numapin_operator.placement.allocations import DeviceGrant
from numapin_operator.placement.devicemanager.pool import Device, DevicePool, counts
from numapin_operator.placement.errors import NotEnoughDevicesError
from numapin_operator.placement.masks import NumaMask
from numapin_operator.placement.requests import Amounts, ContainerKind, ContainerView
from numapin_operator.placement.topologymanager.device_hints import (
    DeviceHints,
    DeviceRequest,
    device_hints,
)
from numapin_operator.placement.topologymanager.hints import Impossible


class PodDevices:
    """What the containers of one pod have taken out of the pool so far.

    Devices of ordinary init containers are left to the containers after them, and stay with the pod
    if none takes them. Resources that no plug-in has registered are none of devices.
    """

    def __init__(self, pool: DevicePool, everywhere: NumaMask) -> None:
        self._pool, self._everywhere = pool, everywhere
        self._of: dict[str, tuple[DeviceGrant, ...]] = {}
        self._claimed: list[DeviceGrant] = []
        self._reusable: dict[str, list[Device]] = {}

    def of(self, container: str) -> tuple[DeviceGrant, ...]:
        """The devices of a container, those that it has from init containers among them."""
        return self._of.get(container, ())

    def hints(self, asked: Amounts, _: str | None) -> tuple[DeviceHints | Impossible, ...]:
        """Where devices could come from: one for each resource that has a preference."""
        return tuple(self._hints(asked)) if asked else ()

    def _hints(self, asked: Amounts) -> Iterator[DeviceHints | Impossible]:
        for resource, wanted in asked:
            if self._pool.has(resource):
                left = tuple(one.numa_nodes for one in self._reusable.get(resource, ()))
                found = device_hints(
                    DeviceRequest(resource, wanted, left),
                    self._pool.there(resource),
                    counts(self._pool.free(resource)),
                    self._everywhere,
                )
                if found is not None:
                    yield found

    def allocate(self, container: ContainerView, numa_nodes: NumaMask | None) -> None:
        """Give a container its devices, those near the NUMA nodes first.

        Raises:
            NotEnoughDevicesError: too few are free.
        """
        for resource, wanted in container.devices:
            if self._pool.has(resource):
                chosen = self._choose(resource, wanted, numa_nodes)
                if chosen:
                    self._take(container, resource, chosen)

    def undo(self) -> None:
        """Return whatever was taken."""
        self._pool.release(self._claimed)

    def _choose(self, resource: str, wanted: int, numa_nodes: NumaMask | None) -> list[Device]:
        """Devices that init containers leave, then free ones.

        The kubelet takes any of equal ones, here it is the first of the plug-in's list.
        """
        if not self._pool.healthy(resource):
            raise NotEnoughDevicesError(resource, wanted, 0, "; none of them is healthy")
        chosen = self._reusable.get(resource, [])[:wanted]
        missing, free = wanted - len(chosen), self._pool.free(resource)
        if missing > len(free):
            raise NotEnoughDevicesError(resource, wanted, len(free) + len(chosen))
        if numa_nodes is not None:
            free.sort(key=lambda one: (not one.numa_nodes & numa_nodes, not one.numa_nodes))
        return chosen + free[:missing]

    def _take(self, container: ContainerView, resource: str, chosen: list[Device]) -> None:
        grant = DeviceGrant(resource, tuple(one.id for one in chosen))
        self._pool.claim((grant,))
        self._claimed.append(grant)
        self._of[container.name] = (*self.of(container.name), grant)
        others = [one for one in self._reusable.get(resource, ()) if one not in chosen]
        is_init = container.kind is ContainerKind.INIT
        self._reusable[resource] = chosen + others if is_init else others
