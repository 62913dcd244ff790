"""Memory that stays bound when the NUMA nodes of a machine have changed under its containers.

Does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment, MemoryBlock
from numapin_api.topology import Topology
from numapin_operator.placement.memorymanager.memory_capacity import memory_of

_Place = tuple[tuple[int, ...], str]
"""NUMA nodes that memory is bound on together, and the resource."""


def within_memory(
    kept: Mapping[str, list[ContainerAssignment]], topology: Topology
) -> dict[str, list[ContainerAssignment]]:
    """The entries, by pod, with no more memory bound than each NUMA node has.

    The pods that come first keep theirs. A pod whose memory does not fit, or is bound to a NUMA
    node that is gone, is bound no longer: its pages may be anywhere. It is marked as outdated, for
    the comparison with the policy. Sizes that the policy reserves do not count, so that an edit of
    them unbinds nothing.
    """
    room = _Room(topology)
    if room.try_bind(chain.from_iterable(one.memory for of_pod in kept.values() for one in of_pod)):
        return dict(kept)
    room, entries = _Room(topology), dict[str, list[ContainerAssignment]]()
    for uid, listed in kept.items():
        fits = room.try_bind(chain.from_iterable(one.memory for one in listed))
        if left := listed if fits else [_unbound(one) for one in listed if one.cpus]:
            entries[uid] = left
    return entries


class _Room:
    """The memory that has been bound on a machine, by the NUMA nodes that it is bound to together.

    What is bound to some NUMA nodes together may be on any of them: so for each such set, what is
    bound inside of it must not be more than its NUMA nodes have.
    """

    def __init__(self, topology: Topology) -> None:
        self._capacity = memory_of(topology)
        self._bound: dict[_Place, int] = {}

    def try_bind(self, blocks: Iterable[MemoryBlock]) -> bool:
        """Bind blocks if all of them fit; else nothing changes."""
        bound = dict(self._bound)
        for block in blocks:
            place = (block.numa_nodes, block.resource)
            bound[place] = bound.get(place, 0) + block.bytes
        if not all(self._fits(place, bound) for place in bound):
            return False
        self._bound = bound
        return True

    def _fits(self, place: _Place, bound: Mapping[_Place, int]) -> bool:
        numa_nodes, resource = place
        has = self._capacity.get(resource, {})
        inside = sum(
            size
            for (others, kind), size in bound.items()
            if kind == resource and set(others) <= set(numa_nodes)
        )
        return inside <= sum(has.get(one, 0) for one in numa_nodes)


def _unbound(entry: ContainerAssignment) -> ContainerAssignment:
    """The entry with its CPUs alone."""
    if not (entry.memory or entry.mems):
        return entry
    moving = entry.moving
    if moving is not None:
        moving = replace(moving, leaving_mems=MemSet())
    return replace(entry, mems=MemSet(), memory=(), outdated=True, moving=moving)
