"""What a search of moves has found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from numapin_operator.placement.allocations import Block, ContainerAllocation, PodAllocation
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask


class Move(NamedTuple):
    """A container with what it has before and after it is moved."""

    uid: str
    namespace: str
    pod: str
    before: ContainerAllocation
    after: ContainerAllocation

    @property
    def arriving(self) -> CpuMask:
        """The CPUs that it gets."""
        return self.after.cpus & ~self.before.cpus

    @property
    def arriving_memory(self) -> tuple[Block, ...]:
        """Its memory, if that is bound to other NUMA nodes."""
        return self.after.memory if self.after.memory != self.before.memory else ()


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves that let a pod fit.

    Attributes:
        moves: one for each container that is moved.
        placed: what the pod then gets.
        moved_cpus: how many CPUs arrive at the moved containers.
    """

    moves: tuple[Move, ...]
    placed: PodAllocation
    moved_cpus: int


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search.

    Attributes:
        found: the moves; None if none were found.
        complete: whether no fewer moved CPUs would do; False if the search reached its limits.
        states: how many combinations were considered.
    """

    found: Moves | None = None
    complete: bool = True
    states: int = 0


def applied(
    allocations: Mapping[str, PodAllocation], made: Sequence[Move]
) -> dict[str, PodAllocation]:
    """The allocations after some moves."""
    changed = dict(allocations)
    for move in made:
        pod = changed[move.uid]
        containers = tuple(
            move.after if one.name == move.after.name else one for one in pod.containers
        )
        changed[move.uid] = pod._replace(containers=containers)
    return changed


def leaves_room(node: Node, made: Sequence[Move]) -> bool:
    """Whether all can have their old and their new CPUs and memory at the same time."""
    arriving = NO_CPUS
    for move in made:
        arriving |= move.arriving
    if not node.cpus.shared & ~arriving:
        return False
    blocks = [block for one in made for block in one.arriving_memory]
    if not blocks or node.memory is None:
        return True
    tables = node.memory.copy()
    for block in blocks:
        if not tables.takes(block):
            return False
        tables.assign(block)
    return True
