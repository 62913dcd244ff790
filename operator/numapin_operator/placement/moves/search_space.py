"""Where moves are searched: a node's CPUs counted by NUMA node, and what its policy allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask, numa_mask
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.topologymanager.hints import CpuHints, cpu_hints_of

Counts = tuple[int, ...]
"""CPUs on each NUMA node that has any, by ascending id of the node."""

Rebuild = Callable[[Mapping[str, PodAllocation]], Node]
"""Makes the node as it would be with other allocations."""


@dataclass(frozen=True)
class SearchSpace:
    """A node, with which pods have what, before anything is moved.

    Attributes:
        node: the node.
        rebuild: makes the node as it would be after some moves.
        moves_memory: whether memory may follow to another NUMA node.
        keeps: whether a container may keep any CPUs when it moves.
        most_moves: how many containers may move at the same time; None for any number.
    """

    node: Node
    rebuild: Rebuild
    moves_memory: bool = False
    keeps: bool = True
    most_moves: int | None = None

    @property
    def policy(self) -> NodePolicy:
        """The policy that governs the node."""
        return self.node.policy

    @cached_property
    def masks(self) -> tuple[CpuMask, ...]:
        """The CPUs of each NUMA node."""
        return tuple(self.policy.cpu_groups.numa_nodes.values())

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The ids of the NUMA nodes."""
        return tuple(self.policy.cpu_groups.numa_nodes)

    def counts(self, cpus: CpuMask) -> Counts:
        """How many of some CPUs each NUMA node has."""
        return tuple((mask & cpus).bit_count() for mask in self.masks)

    def keepable(self, cpus: CpuMask) -> CpuMask:
        """Those that a container may keep when it moves.

        Reserved CPUs leave it, and parts of cores if the policy demands whole ones.
        """
        cpus = CpuMask(cpus & ~self.policy.reserved) if self.keeps else NO_CPUS
        return self._whole_in_node(cpus) if self.policy.cpu_taker.whole_cores_only else cpus

    def usable(self, free: CpuMask, like: CpuMask) -> CpuMask:
        """The CPUs among `free` that may replace those of `like`.

        CPUs that the kernel isolates replace only such: it does not balance threads between both.
        """
        only = self.policy.exclusive_only
        kind = free & only if like & only else free & ~only
        if not self.policy.cpu_taker.whole_cores_only:
            return kind
        return self._whole_in_node(kind & ~self.policy.reserved_cores)

    def _whole_in_node(self, cpus: CpuMask) -> CpuMask:
        """The CPUs of whole cores; a core with threads in several NUMA nodes is never moved to."""
        groups = self.policy.cpu_groups
        return groups.whole_cores(cpus) & groups.in_one_numa_node

    def room(self, like: CpuMask) -> Counts:
        """How many CPUs each NUMA node has that may replace those of `like`."""
        return self.counts(self.usable(self.node.cpus.free, like))

    def take(self, cpus: CpuMask, count: int) -> CpuMask | None:
        """Some of these CPUs as the policy packs them; None if they do not suffice."""
        if count in (0, cpus.bit_count()):
            return cpus if count else NO_CPUS
        if not 0 < count < cpus.bit_count():
            return None
        try:
            return self.policy.cpu_taker.take(cpus, count)
        except PlacementError:
            return None

    def hints(self, wanted: int) -> CpuHints | None:
        """What the policy says of so many CPUs on the empty machine; None if it has fewer."""
        found = cpu_hints_of(self.policy.cpu_taker, self.policy.cpu_groups.cpus, NO_CPUS, wanted)
        return found if isinstance(found, CpuHints) else None

    def accepts(self, wanted: int, numa_nodes: NumaMask) -> bool:
        """Whether the topology policy allows so many CPUs to be on just these NUMA nodes."""
        match self.policy.hint_merger.policy:
            case "SingleNUMANode":
                return numa_nodes.bit_count() == 1
            case "Restricted":
                found = self.hints(wanted)
                return found is not None and found.prefers(numa_nodes)
            case _:
                return True

    def spanned(self, counts: Counts) -> NumaMask:
        """The NUMA nodes that have any of the CPUs counted."""
        return numa_mask(one for one, count in zip(self.ids, counts, strict=True) if count)
