"""Pods that wait for ending or moving ones, and what younger pods leave for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.in_use import account_refused, node_with
from numapin_operator.placement.masks import NO_CPUS, CpuMask, members
from numapin_operator.placement.node import Node
from numapin_operator.placement.requests import Capacity, PodView


@dataclass(frozen=True, slots=True)
class Queued:
    """A pod that fits once ending pods have been released, and moving containers have moved.

    Attributes:
        pod: the pod that waits.
        cpus: those of the CPUs it waits for that these still have; empty if it waits for memory
            alone.
        ending: the pods that end, as namespace and name.
        moving: the pods of containers that are moved, in the same way.
    """

    pod: PodView
    cpus: CpuSet
    ending: tuple[tuple[str, str], ...]
    moving: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class InMotion:
    """The containers that are being moved.

    Attributes:
        leaving: the CPUs that leave them.
        after: what their pods have after that, by UID.
    """

    leaving: CpuMask = NO_CPUS
    after: Mapping[str, PodAllocation] = field(default_factory=dict)


@dataclass
class Queue:
    """The pods of one plan that wait, in their order.

    What a pod waits for and is free already is withheld from the pods that are placed after it.

    Attributes:
        node: the node as it is now.
        alive: its pods by UID.
        unbound: the pods that run without memory bound to them.
        held: huge pages that others hold.
        motion: the containers that are being moved.
        waiting: the pods that wait.
        withheld: the free CPUs that they wait for.
    """

    node: Node
    alive: Mapping[str, PodView]
    unbound: Sequence[PodView]
    held: Capacity
    motion: InMotion = InMotion()
    waiting: list[Queued] = field(default_factory=list)
    withheld: CpuMask = NO_CPUS
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
            allocation = self._later.attempt(pod)
        except PlacementError:
            return False
        self.waiting.append(self._queued(pod, allocation.cpus))
        self._withhold(allocation)
        return True

    @property
    def later(self) -> Node:
        """The node as it will be, with the pods that wait."""
        self._asked = True
        return self._later or self.node

    def give_back(self) -> None:
        """Return the CPUs that were withheld: until they are given, they are shared."""
        self.node.cpus.release(self.withheld)
        self.withheld = NO_CPUS

    @cached_property
    def _later(self) -> Node | None:
        """The node without the pods that are ending, and after all moves.

        None if that is the same.
        """
        node, motion = self.node, self.motion
        staying = [
            motion.after.get(one.uid, one)
            for one in node.allocations.values()
            if self._stays(one.uid)
        ]
        unbound = [pod for pod in self.unbound if not pod.deleting]
        same = len(staying) == len(node.allocations) and len(unbound) == len(self.unbound)
        if same and not motion.after:
            return None
        policy = replace(node.policy, claimed=node.policy.claimed & ~motion.leaving)
        return node_with(policy, staying, unbound, self.held)

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
        moving = {(one.namespace, one.pod) for one in self.motion.after.values()}
        cpus |= wanted & self.motion.leaving
        return Queued(pod, CpuSet.from_mask(cpus), tuple(sorted(names)), tuple(sorted(moving)))

    def _withhold(self, allocation: PodAllocation) -> None:
        node, free = self.node, allocation.cpus & self.node.cpus.free
        node.cpus.claim(CpuMask(free))
        self.withheld = CpuMask(self.withheld | free)
        if node.memory is None:
            return
        for block in allocation.memory:
            left = block.size_bytes
            for numa_node in members(block.numa_nodes):
                left -= node.memory.withhold(block.resource, numa_node, left)
