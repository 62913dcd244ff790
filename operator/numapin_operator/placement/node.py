"""Node: places pods on one machine one after the other, and lets them go."""

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import CpuPool, Holding
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.explain import arithmetic
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pod import Placing
from numapin_operator.placement.policy import Rules
from numapin_operator.placement.requests import PodView


class Node:
    """One machine under one policy, with what its pods hold.

    It is built from values, asked, and thrown away: nothing outlives a plan but the holdings.
    `memory` is None where the policy leaves memory alone.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.cpus = CpuPool(rules)
        self.memory: MemoryTables | None = None
        if rules.capacity:
            numa_nodes = (numa_node.id for numa_node in rules.topology.numa_nodes)
            self.memory = MemoryTables(rules.capacity, numa_nodes)
        self.holdings: dict[str, Holding] = {}

    @property
    def shared(self) -> CpuSet:
        """The CPUs that no container owns."""
        return CpuSet.from_mask(self.cpus.shared)

    def wants(self, pod: PodView) -> bool:
        """Whether the policy would place this pod; all others share."""
        eligible = pod.selected and pod.qos in self.rules.policy.pods.qos_classes
        return eligible and not pod.terminal and not pod.deleting

    def adopt(self, holding: Holding) -> None:
        """Take over what was decided before, as it is."""
        self.holdings[holding.uid] = holding
        self.cpus.claim(holding.cpus)
        if self.memory is not None:
            for block in holding.memory:
                self.memory.assign(block)

    def release(self, uid: str) -> None:
        """Return all that a pod holds; nothing happens where it holds nothing."""
        holding = self.holdings.pop(uid, None)
        if holding is None:
            return
        self.cpus.give_back(holding.cpus)
        if self.memory is not None:
            self.memory.release(holding.memory)

    def place(self, pod: PodView) -> Holding:
        """Give a pod's containers what they ask for, or nothing at all.

        Raises:
            PlacementError: it cannot be; the node is as before.
        """
        placing = Placing(self.rules, self.cpus, self.memory, pod)
        try:
            holding = placing.run()
        except PlacementError as refused:
            refused.arithmetic = arithmetic(self.rules, self.cpus, self.memory, refused)
            placing.undo()
            raise
        if holding.bindings:
            self.holdings[pod.uid] = holding
        return holding
