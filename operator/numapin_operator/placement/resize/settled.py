"""Pods whose entries stay as they are, whatever else a plan decides.

Most pods of a node are such, and most plans find the same ones. So what follows from the entries of
a pod is remembered with them: a plan costs next to nothing for each of these pods.

It is remembered by UID, for the very pod, entries and machine that it was worked out from: any
other ones are looked at anew. Does no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, filterfalse
from operator import attrgetter
from typing import Final, NamedTuple

from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import Block, PodAllocation
from numapin_operator.placement.assignment.entries import allocation_of
from numapin_operator.placement.assignment.size_limit import SizeLimit, entry_bytes
from numapin_operator.placement.assignment.this_machine import on_this_machine
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import ContainerKind, PodView, lost_cpus
from numapin_operator.placement.resize.demand import may_differ

REMEMBERED: Final = 8192
"""Pods of which the last plans are remembered, some 600 bytes each."""


class Settled(NamedTuple):
    """A pod that has what it requests, and what follows from its entries.

    Attributes:
        pod: the pod.
        topology: the machine.
        entries: all of the pod, in their order.
        allocation: what the pod has, by its entries.
        cpus: every CPU of the pod.
        memory: every block of memory of the pod.
        size_bytes: the most bytes that its entries take in etcd.
        marked: whether one of them is marked as outdated, or has lost CPUs.
    """

    pod: PodView
    topology: Topology
    entries: list[ContainerAssignment]
    allocation: PodAllocation
    cpus: CpuMask
    memory: tuple[Block, ...]
    size_bytes: int
    marked: bool


_ENTRIES: Final = attrgetter("entries")
_SIZE: Final = attrgetter("size_bytes")

_KNOWN: Final[dict[str, Settled]] = {}
"""The last plans' pods by UID, the oldest first."""


def forget_settled() -> None:
    """Forget all pods, as a new process knows none."""
    _KNOWN.clear()


def settled_pods(
    held: Mapping[str, list[ContainerAssignment]], alive: Mapping[str, PodView], topology: Topology
) -> dict[str, Settled]:
    """The pods that keep their entries as they are, by UID.

    Args:
        held: the entries of the previous assignment, by pod.
        alive: the pods that have not ended, or still run.
        topology: the machine.
    """
    found, known = dict[str, Settled](), _KNOWN.get
    for uid, entries in held.items():
        pod, one = alive.get(uid), known(uid)
        if pod is None:
            continue
        if (
            one is None
            or one.pod is not pod
            or one.topology is not topology
            or one.entries != entries
        ):
            one = _settled(pod, entries, topology)
        if one is not None:
            found[uid] = one
    return found


def size_limit(
    kept: Mapping[str, Iterable[ContainerAssignment]], settled: Mapping[str, Settled]
) -> SizeLimit:
    """What a NodeAssignment still has room for, with all these entries in it."""
    known = settled.values()
    others = map(kept.__getitem__, filterfalse(settled.__contains__, kept))
    return SizeLimit(
        chain.from_iterable(others),
        entries=sum(map(len, map(_ENTRIES, known))),
        size_bytes=sum(map(_SIZE, known)),
    )


def steady_pods(
    policy: NodePolicy, settled: Mapping[str, Settled], pods: Mapping[str, PodView]
) -> set[str]:
    """The UIDs of settled pods that a policy which is the same as before places as they are."""
    reserved, classes = policy.reserved, policy.spec.pods.qos_classes
    return {
        uid
        for uid, one in settled.items()
        if not (one.marked or one.cpus & reserved)
        and (pod := one.pod).selected
        and pod.qos in classes
        and pods.get(uid) is pod
    }


def _settled(
    pod: PodView, entries: Sequence[ContainerAssignment], topology: Topology
) -> Settled | None:
    if not _is_plain(pod) or any(one.claimed or one.moving for one in entries):
        return None
    if any(on_this_machine(one, topology) is not one for one in entries):
        return None
    allocation = allocation_of(pod.uid, entries)
    if may_differ(pod, allocation):
        return None
    marked = any(
        one.outdated or lost_cpus(pod, one.container, len(one.cpus)) > 0 for one in entries
    )
    size_bytes = sum(map(entry_bytes, entries))
    made = Settled(
        pod,
        topology,
        list(entries),
        allocation,
        allocation.cpus,
        allocation.memory,
        size_bytes,
        marked,
    )
    _remember(made)
    return made


def _is_plain(pod: PodView) -> bool:
    """Whether nothing about a pod is in the way: no step of a plan concerns it but a resize."""
    if pod.pod_level is not None or pod.terminal or pod.claims_unknown:
        return False
    return not any(
        one.kind is ContainerKind.INIT or one.ended or one.cpu_claims for one in pod.containers
    )


def _remember(one: Settled) -> None:
    uid = one.pod.uid
    _KNOWN.pop(uid, None)
    _KNOWN[uid] = one
    while len(_KNOWN) > REMEMBERED:
        del _KNOWN[next(iter(_KNOWN))]
