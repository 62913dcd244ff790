"""Pods that wait for ending or moving ones, and what younger pods leave for them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.allocations import Block, PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.machine.in_use import account_refused, node_with
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask, members
from numapin_operator.placement.policy.node_policy import NodePolicy
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
    """The containers that are being moved, or must move so that a pod fits.

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
        motion: the containers that are being moved, and those that a pod waits for.
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
    _refused: list[PodView] = field(default_factory=list)

    def note_placed(self, allocation: PodAllocation) -> None:
        """Take in a pod that has just been placed."""
        if self._asked and self._later is not None:
            self._later.adopt(allocation)

    def note_refused(self, pod: PodView) -> None:
        """Take in a pod that has just been refused: it runs, and its memory stays in use."""
        self._refused.append(pod)
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
        self._withhold(allocation.cpus, allocation.memory)
        return True

    def expect(
        self,
        waiting: Queued,
        motion: InMotion,
        placed: PodAllocation,
        arriving: Iterable[Block],
    ) -> None:
        """Have a pod wait for moves, whether or not they have begun.

        What is free already of its own CPUs and memory, and of those that the moved containers get,
        is kept. The pods after it find the node as it will be.

        Args:
            waiting: the pod that waits.
            motion: the containers that move.
            placed: what the pod gets then.
            arriving: the memory that the moved containers get.
        """
        base = self.later
        allocations = {**base.allocations, **motion.after, placed.uid: placed}
        self._later = self._made(base.policy, allocations.values())
        self.waiting.append(waiting)
        self.motion = InMotion(
            CpuMask(self.motion.leaving | motion.leaving), {**self.motion.after, **motion.after}
        )
        self._withhold(placed.cpus, placed.memory)
        for one in motion.after.values():
            self._withhold(one.cpus, ())
        self._withhold(NO_CPUS, arriving)

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
        unbound = any(pod.deleting for pod in self.unbound)
        if len(staying) == len(node.allocations) and not unbound and not motion.after:
            return None
        policy = replace(node.policy, claimed=node.policy.claimed & ~motion.leaving)
        return self._made(policy, staying)

    def _made(self, policy: NodePolicy, allocations: Iterable[PodAllocation]) -> Node:
        """The node with other allocations, and the memory that ending pods do not use."""
        unbound = [pod for pod in self.unbound if not pod.deleting]
        node = node_with(policy, allocations, unbound, self.held)
        for pod in self._refused:
            account_refused(node, pod)
        return node

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

    def _withhold(self, cpus: CpuMask, memory: Iterable[Block]) -> None:
        node, free = self.node, cpus & self.node.cpus.free
        node.cpus.claim(CpuMask(free))
        self.withheld = CpuMask(self.withheld | free)
        if node.memory is None:
            return
        for block in memory:
            left = block.size_bytes
            for numa_node in members(block.numa_nodes):
                left -= node.memory.withhold(block.resource, numa_node, left)
