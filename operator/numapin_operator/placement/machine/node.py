"""One machine on which pods are placed one after the other, and released."""

from collections.abc import Mapping, Sequence

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import Block, PodAllocation
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.devicemanager.pool import NO_DEVICES, DevicePool, Devices
from numapin_operator.placement.errors import InvalidPodError, PlacementError
from numapin_operator.placement.explain import what_is_free, what_would_fit
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pods.fitting import Fitting, Trials
from numapin_operator.placement.pods.pod import PodPlacement
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.policy.pod_requests import check_required
from numapin_operator.placement.requests import PodView, devices_alone


class Node:
    """One machine under one policy, with what its pods have been given.

    It is built for one plan and thrown away; only the allocations outlive it. `memory` is None if
    the policy leaves memory alone, `devices` if no device plug-in has registered any.
    """

    def __init__(self, policy: NodePolicy, devices: Devices = NO_DEVICES) -> None:
        self.policy = policy
        self.cpus = CpuPool(
            policy.all_shared, policy.reserved, policy.reserved_cores, policy.exclusive_only
        )
        self.cpus.claim(policy.claimed)
        self.memory: MemoryTables | None = None
        if policy.binds_memory:
            numa_nodes = (numa_node.id for numa_node in policy.topology.numa_nodes)
            self.memory = MemoryTables(policy.capacity, numa_nodes)
        self.devices = DevicePool(devices) if devices else None
        self.allocations: dict[str, PodAllocation] = {}

    @property
    def shared(self) -> CpuSet:
        """The CPUs that no container has to itself."""
        return CpuSet.from_mask(self.cpus.shared)

    def wants(self, pod: PodView) -> bool:
        """Whether the policy places this pod; every other pod uses the shared pool.

        A pod is placed for its devices alone too, as the kubelet does, whatever its QoS class.
        What a pod has as a whole cannot be divided between numapin and a DRA driver.
        """
        eligible = pod.selected and pod.qos in self.policy.spec.pods.qos_classes
        if self.devices is not None:
            eligible = eligible or self.devices.serves(pod)
        divided = pod.pod_level is not None and pod.has_cpu_claims
        waits = pod.claims_unknown or pod.deleting
        return eligible and not (pod.terminal or divided or waits)

    def adopt(self, allocation: PodAllocation) -> None:
        """Take over an earlier decision unchanged."""
        self.allocations[allocation.uid] = allocation
        self.cpus.claim(allocation.cpus)
        if self.devices is not None:
            self.devices.claim(allocation.devices)
        if self.memory is not None:
            for block in allocation.memory:
                self.memory.assign(block)

    def adopt_all(
        self, allocations: Mapping[str, PodAllocation], cpus: CpuMask, memory: Sequence[Block]
    ) -> None:
        """Take over earlier decisions unchanged; `cpus` and `memory` are all that they have."""
        self.allocations.update(allocations)
        self.cpus.claim(cpus)
        if self.memory is not None:
            self.memory.assign_all(memory)

    def replace(self, allocation: PodAllocation) -> None:
        """Take over what a pod has now, after a resize; CPUs new to it are claimed already."""
        before = self.allocations[allocation.uid]
        self._share(before.cpus & ~allocation.cpus)
        if self.memory is not None:
            self.memory.release(before.memory)
            for block in allocation.memory:
                self.memory.assign(block)
        if allocation.containers:
            self.allocations[allocation.uid] = allocation
        else:
            del self.allocations[allocation.uid]

    def release(self, uid: str) -> None:
        """Return whatever a pod has been given; nothing happens if it has nothing."""
        allocation = self.allocations.pop(uid, None)
        if allocation is None:
            return
        self._share(allocation.cpus)
        if self.devices is not None:
            self.devices.release(allocation.devices)
        if self.memory is not None:
            self.memory.release(allocation.memory)

    def _share(self, cpus: CpuMask) -> None:
        """Return CPUs to the pool."""
        blindly = self.policy.quirks.shares_released_cpus_blindly
        self.cpus.release(cpus if blindly else cpus & self.policy.given_out)

    def place(self, pod: PodView) -> PodAllocation:
        """Give a pod's containers what they ask for, or nothing at all.

        Raises:
            PlacementError: the pod does not fit, or it is invalid; the node is unchanged. The error
                says what was free, and what would have fitted.
        """
        try:
            return self.attempt(pod)
        except PlacementError as refused:
            self.explain(pod, refused, Trials())
            raise

    def _with_devices_alone(self, pod: PodView) -> bool:
        """Whether a pod that is placed gets neither CPUs nor memory of its own."""
        qos_classes = self.policy.spec.pods.qos_classes
        return not (pod.selected and pod.qos in qos_classes)

    def attempt(self, pod: PodView) -> PodAllocation:
        """Do as `place`, but leave what was free out of an error."""
        if pod.problem:
            raise InvalidPodError(pod.problem)
        if pod.near is not None:
            check_required(self.policy.spec, self.policy.topology, pod)
        memory, placed = self.memory, pod
        if self.devices is not None and self._with_devices_alone(pod):
            memory, placed = None, devices_alone(pod)
        placement = PodPlacement(self.policy, self.cpus, memory, self.devices, placed)
        try:
            allocation = placement.run()
        except PlacementError as refused:
            own = placement.taken(refused.container)
            refused.free = what_is_free(self.policy, self.cpus, self.memory, refused, own)
            placement.undo()
            raise
        if allocation.containers:
            self.allocations[pod.uid] = allocation
        return allocation

    def explain(self, pod: PodView, refused: PlacementError, trials: Trials) -> None:
        """Add what would have fitted to the error with which a pod was just refused.

        Nothing is added to an error that is not about what is free.
        """
        if refused.free and not (self.devices is not None and self._with_devices_alone(pod)):
            search = Fitting(self.policy, self.cpus, self.memory, self.devices)
            count = search.most_cpus(pod, refused.container, trials)
            refused.fitting = what_would_fit(self.policy, refused, count)
