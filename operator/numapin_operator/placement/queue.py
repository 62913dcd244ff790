"""Pods that wait for ending ones, and what younger pods leave for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.in_use import account_refused, account_unbound, withhold
from numapin_operator.placement.masks import NO_CPUS, CpuMask, members
from numapin_operator.placement.node import Node
from numapin_operator.placement.requests import Capacity, PodView


@dataclass(frozen=True, slots=True)
class Queued:
    """A pod that fits once ending pods have been released.

    Attributes:
        pod: the pod that waits.
        cpus: those of the CPUs it waits for that ending pods still have; empty if it waits for
            memory alone.
        ending: the pods that have them, as namespace and name.
    """

    pod: PodView
    cpus: CpuSet
    ending: tuple[tuple[str, str], ...]


@dataclass
class Queue:
    """The pods of one plan that wait, in their order.

    What a pod waits for and is free already is withheld from the pods that are placed after it.

    Attributes:
        node: the node as it is now.
        alive: its pods by UID.
        unbound: the pods that run without memory bound to them.
        held: huge pages that others hold.
        waiting: the pods that wait.
    """

    node: Node
    alive: Mapping[str, PodView]
    unbound: Sequence[PodView]
    held: Capacity
    waiting: list[Queued] = field(default_factory=list)
    _withheld: CpuMask = NO_CPUS
    _asked: bool = False

    def note_placed(self, allocation: PodAllocation) -> None:
        """Take in a pod that has just been placed."""
        if self._asked and self._later is not None:
            self._later.adopt(allocation)

    def note_refused(self, pod: PodView) -> None:
        """Take in a pod that has just been refused: it runs, and its memory stays in use."""
        account_refused(self.node, pod)
        if self._asked and self._later is not None:
            account_refused(self._later, pod)

    def add(self, pod: PodView) -> bool:
        """Have a pod wait that does not fit now; return False if waiting would not help."""
        self._asked = True
        if self._later is None:
            return False
        try:
            allocation = self._later.place(pod)
        except PlacementError:
            return False
        self.waiting.append(self._queued(pod, allocation.cpus))
        self._withhold(allocation)
        return True

    def give_back(self) -> None:
        """Return the CPUs that were withheld: until they are given, they are shared."""
        self.node.cpus.release(self._withheld)
        self._withheld = NO_CPUS

    @cached_property
    def _later(self) -> Node | None:
        """The node without the pods that are ending; None if none is."""
        node = self.node
        staying = [one for one in node.allocations.values() if self._stays(one.uid)]
        unbound = [pod for pod in self.unbound if not pod.deleting]
        if len(staying) == len(node.allocations) and len(unbound) == len(self.unbound):
            return None
        later = Node(node.policy)
        for allocation in staying:
            later.adopt(allocation)
        account_unbound(later, unbound)
        withhold(later, self.held)
        return later

    def _stays(self, uid: str) -> bool:
        pod = self.alive.get(uid)
        return pod is not None and not (pod.terminal or pod.deleting)

    def _queued(self, pod: PodView, wanted: CpuMask) -> Queued:
        ending = [one for one in self.node.allocations.values() if not self._stays(one.uid)]
        holders = [one for one in ending if one.cpus & wanted]
        cpus = NO_CPUS
        for one in holders:
            cpus |= one.cpus & wanted
        names = {(one.namespace, one.pod) for one in holders or ending}
        if not names:
            names = {(one.namespace, one.name) for one in self.unbound if one.deleting}
        return Queued(pod, CpuSet.from_mask(cpus), tuple(sorted(names)))

    def _withhold(self, allocation: PodAllocation) -> None:
        node, free = self.node, allocation.cpus & self.node.cpus.free
        node.cpus.claim(CpuMask(free))
        self._withheld = CpuMask(self._withheld | free)
        if node.memory is None:
            return
        for block in allocation.memory:
            left = block.size_bytes
            for numa_node in members(block.numa_nodes):
                left -= node.memory.withhold(block.resource, numa_node, left)
