"""Node: places pods on one machine one after the other, and lets them go."""

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import CpuPool, PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.explain import arithmetic
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pod import PodPlacement
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import PodView


class Node:
    """One machine under one policy, with what its pods hold.

    It is built from values, asked, and thrown away: nothing outlives a plan but the allocations.
    `memory` is None where the policy leaves memory alone.
    """

    def __init__(self, policy: NodePolicy) -> None:
        self.policy = policy
        self.cpus = CpuPool(policy)
        self.memory: MemoryTables | None = None
        if policy.capacity:
            numa_nodes = (numa_node.id for numa_node in policy.topology.numa_nodes)
            self.memory = MemoryTables(policy.capacity, numa_nodes)
        self.allocations: dict[str, PodAllocation] = {}

    @property
    def shared(self) -> CpuSet:
        """The CPUs that no container owns."""
        return CpuSet.from_mask(self.cpus.shared)

    def wants(self, pod: PodView) -> bool:
        """Whether the policy would place this pod; all others share."""
        eligible = pod.selected and pod.qos in self.policy.spec.pods.qos_classes
        return eligible and not pod.terminal and not pod.deleting

    def adopt(self, allocation: PodAllocation) -> None:
        """Take over what was decided before, as it is."""
        self.allocations[allocation.uid] = allocation
        self.cpus.claim(allocation.cpus)
        if self.memory is not None:
            for block in allocation.memory:
                self.memory.assign(block)

    def release(self, uid: str) -> None:
        """Return all that a pod holds; nothing happens where it holds nothing."""
        allocation = self.allocations.pop(uid, None)
        if allocation is None:
            return
        self.cpus.release(allocation.cpus)
        if self.memory is not None:
            self.memory.release(allocation.memory)

    def place(self, pod: PodView) -> PodAllocation:
        """Give a pod's containers what they ask for, or nothing at all.

        Raises:
            PlacementError: it cannot be; the node is as before.
        """
        placing = PodPlacement(self.policy, self.cpus, self.memory, pod)
        try:
            allocation = placing.run()
        except PlacementError as refused:
            refused.arithmetic = arithmetic(self.policy, self.cpus, self.memory, refused)
            placing.undo()
            raise
        if allocation.containers:
            self.allocations[pod.uid] = allocation
        return allocation
