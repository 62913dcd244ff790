"""The containers that may be moved, and the NUMA nodes to which each can go."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from numapin_operator.placement.allocations import (
    Block,
    ContainerAllocation,
    PodAllocation,
    cpus_of,
    mems_of,
)
from numapin_operator.placement.masks import NO_CPUS, NO_NUMA_NODES, CpuMask, NumaMask
from numapin_operator.placement.moves.search_space import Counts, SearchSpace
from numapin_operator.placement.policy.pod_requests import ANYWHERE, stays_on
from numapin_operator.placement.requests import ContainerKind, PodView, exclusive_cpus, lost_cpus

MOST_NUMA_NODES: Final = 2
"""A container on more NUMA nodes is not moved: the ways to divide it are too many."""


class Place(NamedTuple):
    """How many CPUs a movable could have on each NUMA node.

    Attributes:
        counts: the CPUs, in the order of `SearchSpace.masks`.
        arrivals: those of them that it does not have yet.
        cost: how many CPUs arrive.
    """

    counts: Counts
    arrivals: Counts
    cost: int


@dataclass(frozen=True)
class Movable:
    """Containers that move together: one, or all of a pod that is aligned as a whole.

    Attributes:
        pod: the pod that they belong to, with what it has been given.
        containers: those that move.
        wanted: how many CPUs each has, and will have.
        stays_on: the NUMA nodes that it is not moved off, by the annotations of its pod.
    """

    pod: PodAllocation
    containers: tuple[ContainerAllocation, ...]
    wanted: tuple[int, ...]
    stays_on: NumaMask = ANYWHERE

    @cached_property
    def cpus(self) -> CpuMask:
        """All its CPUs."""
        return cpus_of(self.containers)

    @cached_property
    def memory(self) -> tuple[Block, ...]:
        """All memory that is bound for it."""
        return tuple(block for one in self.containers for block in one.memory)

    @property
    def total(self) -> int:
        """How many CPUs it must have."""
        return sum(self.wanted)

    def likeness(self, space: SearchSpace) -> tuple[object, ...]:
        """What makes two movables interchangeable, as a sort key."""
        keep = space.counts(space.keepable(self.cpus))
        is_isolated = bool(self.cpus & space.policy.exclusive_only)
        blocks = tuple(sorted(self.memory))
        return space.counts(self.cpus), keep, self.wanted, is_isolated, blocks, self.stays_on


def movables(
    space: SearchSpace,
    pods: Mapping[str, PodView],
    allowed: Collection[tuple[str, str]],
    *,
    with_lost: bool = False,
) -> tuple[Movable, ...]:
    """What may be moved, those that are alike side by side, of these the youngest first.

    A pod does not move that has pod-level resources, is ending, or has an init container left:
    containers after that may share its CPUs. Neither does a container with another number of CPUs
    than it requests: it is resized, or has lost some that went offline.

    Args:
        space: the node.
        pods: its pods by UID.
        allowed: the containers that may be moved, as pod UID and name.
        with_lost: those that have lost CPUs too. They get as many as they request.
    """
    found: list[Movable] = []
    for allocation in reversed(space.node.allocations.values()):
        pod = pods.get(allocation.uid)
        if pod is None or not _is_simple(pod, allocation):
            continue
        for group in _groups(space, allocation):
            if all((allocation.uid, one.name) in allowed for one in group):
                found.extend(_movable(space, pod, allocation, group, with_lost))
    return tuple(sorted(found, key=lambda one: one.likeness(space)))


def _is_simple(pod: PodView, allocation: PodAllocation) -> bool:
    starting = any(one.kind is ContainerKind.INIT and not one.ended for one in pod.containers)
    as_whole = pod.pod_level is not None or allocation.pod_level is not None
    return not (pod.terminal or pod.deleting or as_whole or starting)


def _groups(
    space: SearchSpace, allocation: PodAllocation
) -> Iterator[tuple[ContainerAllocation, ...]]:
    """The exclusive containers of a pod, together where the policy aligns the pod as a whole."""
    exclusive = tuple(one for one in allocation.containers if one.exclusive and one.cpus)
    if not exclusive:
        return
    topology = space.policy.spec.topology
    if topology.policy != "None" and topology.scope == "Pod":
        if len(exclusive) == len(allocation.containers):
            yield exclusive
    else:
        yield from ((one,) for one in exclusive)


def _movable(
    space: SearchSpace,
    pod: PodView,
    allocation: PodAllocation,
    group: Sequence[ContainerAllocation],
    with_lost: bool,
) -> Iterator[Movable]:
    asked = {one.name: exclusive_cpus(pod, one) for one in pod.containers}
    wanted = tuple(asked.get(one.name, 0) for one in group)
    has = tuple(one.cpus.bit_count() for one in group)
    lost = (lost_cpus(pod, one.name, one.cpus.bit_count()) if with_lost else 0 for one in group)
    cpus = cpus_of(group)
    mixed = 0 != cpus & space.policy.exclusive_only != cpus
    apart = cpus.bit_count() == sum(has)
    if apart and not mixed and wanted == tuple(map(sum, zip(has, lost, strict=True))):
        wishes = stays_on(space.policy.spec, space.policy.topology, pod)
        yield Movable(allocation, tuple(group), wanted, wishes)


def places(space: SearchSpace, unit: Movable) -> tuple[Place, ...]:
    """Where a movable can go, the cheapest first; where it is already is not listed.

    It needs CPUs that are free now, is aligned as the policy demands, and is on no more NUMA nodes
    than before. If it is near its devices, it stays near, and it moves to no other NUMA nodes than
    those that its pod says it is to be near, if any. Bound memory keeps it on its NUMA nodes unless
    memory moves too; then it may go to a single other one.
    """
    now = space.spanned(space.counts(unit.cpus)).bit_count()
    if now > MOST_NUMA_NODES:
        return ()
    keep = space.counts(space.keepable(unit.cpus))
    room = space.room(unit.cpus)
    found = [
        Place(counts, arrivals, cost)
        for size in range(1, now + 1)
        for counts in _divisions(unit.total, tuple(map(sum, zip(keep, room, strict=True))), size)
        if _may_be_on(space, unit, space.spanned(counts))
        for arrivals in [tuple(max(0, n - k) for n, k in zip(counts, keep, strict=True))]
        for cost in [sum(arrivals)]
        if cost
    ]
    return tuple(sorted(found, key=_cost_first))


def _cost_first(place: Place) -> tuple[int, Counts]:
    """Sort key of places: the cheapest first, then the lowest NUMA nodes."""
    return place.cost, tuple(-count for count in place.counts)


def _divisions(total: int, most: Counts, size: int) -> Iterator[Counts]:
    """The ways to divide CPUs over just `size` NUMA nodes, 1 or 2."""
    for chosen in combinations(range(len(most)), size):
        first, last = chosen[0], chosen[-1]
        shares = range(1, total) if size > 1 else (total,)
        for share in shares:
            if share <= most[first] and (size == 1 or total - share <= most[last]):
                counts = [0] * len(most)
                counts[last] = total - share
                counts[first] = share
                yield tuple(counts)


def _may_be_on(space: SearchSpace, unit: Movable, numa_nodes: NumaMask) -> bool:
    if not space.accepts(unit.total, numa_nodes):
        return False
    before = space.spanned(space.counts(unit.cpus))
    near = _near_devices(space, unit)
    leaves_devices = near and numa_nodes & ~near and not before & ~near
    if leaves_devices or numa_nodes & ~(before | unit.stays_on):
        return False
    if not unit.memory or not numa_nodes & ~before:
        return True
    return space.moves_memory and numa_nodes.bit_count() == 1


def _near_devices(space: SearchSpace, unit: Movable) -> NumaMask:
    """The NUMA nodes of the devices that the containers have; none if that is not known."""
    devices = space.policy.devices
    if devices is None:
        return NO_NUMA_NODES
    return devices.near(unit.pod.uid, [one.name for one in unit.containers])


def after_move(
    space: SearchSpace, unit: Movable, place: Place, free: CpuMask
) -> tuple[ContainerAllocation, ...] | None:
    """What the containers have after a move to `place`; None if `free` cannot give it."""
    keepable = space.keepable(unit.cpus)
    kept = added = NO_CPUS
    for mask, count, new in zip(space.masks, place.counts, place.arrivals, strict=True):
        stays = space.take(keepable & mask, count - new)
        comes = space.take(space.usable(free, unit.cpus) & mask, new)
        if stays is None or comes is None:
            return None
        kept, added = kept | stays, added | comes
    return _divided(space, unit, kept, added)


def _divided(
    space: SearchSpace, unit: Movable, kept: CpuMask, added: CpuMask
) -> tuple[ContainerAllocation, ...] | None:
    """The CPUs by container: each keeps its own and gets the rest of those that arrive."""
    moved: list[ContainerAllocation] = []
    for one, wanted in zip(unit.containers, unit.wanted, strict=True):
        own = one.cpus & kept
        more = space.take(added, wanted - own.bit_count())
        if more is None:
            return None
        added &= ~more
        moved.append(one._replace(cpus=own | more))
    numa_nodes = space.policy.cpu_groups.numa_nodes_of(cpus_of(moved))
    if numa_nodes & ~space.policy.cpu_groups.numa_nodes_of(unit.cpus):
        moved = [_with_memory_on(one, numa_nodes) for one in moved]
    return tuple(moved)


def _with_memory_on(container: ContainerAllocation, numa_nodes: NumaMask) -> ContainerAllocation:
    """The container with its memory, if any is bound, on one other NUMA node."""
    blocks = tuple(block._replace(numa_nodes=numa_nodes) for block in container.memory)
    return container._replace(memory=blocks, mems=mems_of(blocks))
