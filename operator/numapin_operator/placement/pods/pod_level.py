"""Pod-level resources: given to the pod as a whole and shared out among its containers.

Source: Kubernetes v1.36, `AllocatePod` of cpumanager and memorymanager.
"""

from collections.abc import Mapping
from contextlib import suppress

from numapin_operator.placement.allocations import (
    Block,
    ContainerAllocation,
    DeviceGrant,
    PodAllocation,
    cpus_of,
    mems_of,
)
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.devicemanager.pod_devices import PodDevices
from numapin_operator.placement.errors import (
    EmptyPodSharedPoolError,
    NotEnoughDevicesError,
    PlacementError,
)
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.binder import MemoryBinder
from numapin_operator.placement.memorymanager.pod_blocks import divide
from numapin_operator.placement.pods.hint import HintFinder
from numapin_operator.placement.pods.pod_shares import (
    CpuShares,
    share_cpus,
    share_memory,
    starves_of_cpus,
    starves_of_memory,
)
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import (
    PodView,
    pod_cpus,
    pod_devices,
    pod_memory,
)
from numapin_operator.placement.topologymanager.merge import MergedHint

Devices = Mapping[str, tuple[DeviceGrant, ...]]
"""The devices of each container."""


class PodLevelPlacement:
    """One pod with pod-level resources being placed as a whole."""

    def __init__(
        self,
        policy: NodePolicy,
        cpus: PodCpus,
        memory: MemoryBinder,
        devices: PodDevices | None,
        pod: PodView,
    ) -> None:
        self._policy, self._cpus, self._memory, self._pod = policy, cpus, memory, pod
        self._devices = devices

    def run(self, hints: HintFinder) -> PodAllocation:
        """Give the pod CPUs and memory, and share them out; then its containers their devices.

        Raises:
            PlacementError: it cannot be placed.
        """
        pod, count, asked = self._pod, pod_cpus(self._pod), pod_memory(self._pod)
        no_cpus = starves_of_cpus(pod) if count else None
        no_memory = starves_of_memory(pod) if self._policy.binds_memory else None
        devices = pod_devices(pod) if hints.heeds_devices else ()
        hint = hints.find(count, asked, devices, no_cpus=no_cpus or "", no_memory=no_memory or "")
        if no_cpus:
            raise EmptyPodSharedPoolError(no_cpus)
        cpus = self._cpus.allocate_pod(count, hint.numa_nodes) if count else NO_CPUS
        shares = self._share_cpus(cpus) if count else CpuShares({}, {}, NO_CPUS)
        if no_memory:
            raise EmptyPodSharedPoolError(no_memory)
        bound = self._memory.bind_pod(asked, hint, cpus)
        blocks = divide(share_memory(pod), bound) if self._policy.binds_memory else {}
        given = self._start_containers(self._devices, hint) if self._devices is not None else {}
        return self._allocation(
            shares, blocks, given, ContainerAllocation("", cpus, mems_of(bound), bound)
        )

    def _start_containers(self, devices: PodDevices, hint: MergedHint) -> Devices:
        """Give containers their devices as they start: the kubelet gives the pod none as a whole.

        One for which there are too few does not start, and the pod stays.
        """
        for container in self._pod.containers:
            with suppress(NotEnoughDevicesError):
                devices.allocate(container, hint.numa_nodes)
        return {one.name: devices.of(one.name) for one in self._pod.containers}

    def _share_cpus(self, cpus: CpuMask) -> CpuShares:
        try:
            return share_cpus(self._pod, cpus, self._policy.cpu_taker.take)
        except PlacementError:
            if self._policy.quirks.leaks_cpus_of_refused_pods:
                self._cpus.forget()
            raise

    def _allocation(
        self,
        shares: CpuShares,
        blocks: dict[str, tuple[Block, ...]],
        devices: Devices,
        whole: ContainerAllocation,
    ) -> PodAllocation:
        containers = tuple(
            ContainerAllocation(
                name,
                shares.exclusive.get(name, shares.early.get(name, shares.rest)),
                mems_of(blocks.get(name, ())),
                blocks.get(name, ()),
                exclusive=name in shares.exclusive,
                devices=devices.get(name, ()),
            )
            for name in (container.name for container in self._pod.containers)
        )
        if not self._policy.quirks.keeps_unused_pod_cpus:
            used = cpus_of(containers)
            self._cpus.release(whole.cpus & ~used)
            whole = whole._replace(cpus=used)
        return PodAllocation(self._pod.uid, self._pod.namespace, self._pod.name, containers, whole)
