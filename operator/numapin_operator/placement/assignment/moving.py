"""The entries of containers that are moved, step by step. Does no I/O.

A container that is moved has its old and its new CPUs first (`begun`). Later the old ones leave it
(`dropped`); nobody else gets them before they have left in the kernel too (`finished`).
"""

from collections.abc import Iterable
from dataclasses import replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment, Moving


def begun(
    before: ContainerAssignment,
    after: ContainerAssignment,
    now: str,
    demand: tuple[str, str] | None,
) -> ContainerAssignment:
    """The entry of a container with what it has, and what it will have.

    If no CPU leaves, it has just got further ones, and the move is over.

    Args:
        before: what it has.
        after: what it will have.
        now: the time, which the entry keeps.
        demand: the pod for which it moves, as namespace and name; None if it moves for its own
            good.
    """
    namespace, pod = demand or (None, None)
    stays, leaving = before.mems == after.mems, before.cpus - after.cpus
    moving = None
    if leaving:
        gone = MemSet() if stays else before.mems - after.mems
        moving = Moving(leaving=leaving, leaving_mems=gone, namespace=namespace, pod=pod)
    return replace(
        before,
        cpus=before.cpus | after.cpus,
        mems=before.mems | after.mems,
        memory=before.memory if stays else (*before.memory, *after.memory),
        grants=None,
        moving=moving,
        moved_at=now,
    )


def giving_back(
    entry: ContainerAssignment, kept: CpuSet, grants: tuple[CpuSet, ...]
) -> ContainerAssignment:
    """The entry of a container that is resized and has to give back all CPUs but `kept`.

    It moves to nowhere, and for no other pod. `grants` are those that it keeps, by age; there are
    some, whereas a container that is moved has none.
    """
    moving = Moving(leaving=entry.cpus - kept)
    return replace(entry, moving=moving, grants=grants)


def is_giving_back(entry: ContainerAssignment) -> bool:
    """Whether the container only gives CPUs back, and does not move elsewhere."""
    return entry.moving is not None and entry.grants is not None


def is_dropped(entry: ContainerAssignment) -> bool:
    """Whether the CPUs that leave are not the container's any more."""
    return entry.moving is not None and entry.moving.leaving.isdisjoint(entry.cpus)


def noticed(entry: ContainerAssignment, at: str) -> ContainerAssignment:
    """The entry with the time at which the old CPUs leave."""
    assert entry.moving is not None
    return replace(entry, moving=replace(entry.moving, at=at))


def dropped(entry: ContainerAssignment) -> ContainerAssignment:
    """The entry without the CPUs and NUMA nodes that leave; memory there still counts as its."""
    assert entry.moving is not None
    cpus, mems = entry.cpus - entry.moving.leaving, entry.mems - entry.moving.leaving_mems
    return replace(entry, cpus=cpus, mems=mems)


def finished(entry: ContainerAssignment) -> ContainerAssignment:
    """The entry after its move, whatever step it is at; an entry that does not move stays."""
    moving = entry.moving
    if moving is None:
        return entry
    gone = set(moving.leaving_mems)
    stays = tuple(one for one in entry.memory if not gone.intersection(one.numa_nodes))
    return replace(dropped(entry), memory=stays, moving=None)


def leaving_cpus(entries: Iterable[ContainerAssignment]) -> CpuSet:
    """All CPUs that leave a container."""
    return CpuSet.union(one.moving.leaving for one in entries if one.moving is not None)


def on_online_cpus(entry: ContainerAssignment, online: CpuSet) -> ContainerAssignment:
    """A moving entry without the CPUs that went offline; it stays where it is if that must be.

    That is so if all its new CPUs are offline, or nothing is left to leave it.
    """
    moving = entry.moving
    if moving is None:
        return entry
    leaving, new = moving.leaving & online, entry.cpus - moving.leaving
    if not leaving:
        return finished(entry)
    if new & online:
        return replace(entry, moving=replace(moving, leaving=leaving))
    stays = tuple(one for one in entry.memory if set(one.numa_nodes) <= set(moving.leaving_mems))
    mems = moving.leaving_mems or entry.mems
    return replace(entry, mems=mems, memory=stays or entry.memory, moving=None)
