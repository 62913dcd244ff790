"""Every resize on one node: all that shrink, then all that grow, in the order of placement."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from numapin_api.schema.plain_assignment import ContainerAssignment, Refusal
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.assignment.entries import entries_of, refusal_of
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.resize.demand import may_differ
from numapin_operator.placement.resize.pod import PodResize

Entries = Mapping[str, list[ContainerAssignment]]
"""The entries that stay, by pod."""


class Resized(NamedTuple):
    """The UIDs of the pods that have been resized, and what pods could not get."""

    pods: frozenset[str]
    refused: tuple[Refusal, ...]


def resize_pods(node: Node, pods: Iterable[PodView]) -> Resized:
    """Give the pods of a node what they ask for by now.

    What some give back, others get at once. A pod that cannot grow keeps what it has.
    """
    before = dict(node.allocations)
    placed = [
        (pod, PodResize(node, pod))
        for pod in pods
        if (has := node.allocations.get(pod.uid)) is not None and may_differ(pod, has)
    ]
    if not placed:
        return Resized(frozenset(), ())
    for _, resize in placed:
        resize.shrink()
    refused = tuple(
        refusal_of(pod, failed.error, failed.requested)
        for pod, resize in placed
        for failed in resize.grow()
    )
    changed = (uid for uid, had in before.items() if node.allocations.get(uid) is not had)
    return Resized(frozenset(changed), refused)


def resized_entries(
    kept: Entries, node: Node, changed: Collection[str]
) -> dict[str, list[ContainerAssignment]]:
    """The entries that stay, with what the pods in `changed` have on `node` now.

    Entries of claimed containers stay as they are.
    """
    if not changed:
        return dict(kept)
    resized = {
        uid: _entries(listed, node.allocations.get(uid), node.policy.topology)
        if uid in changed
        else listed
        for uid, listed in kept.items()
    }
    return {uid: listed for uid, listed in resized.items() if listed}


def _entries(
    before: Sequence[ContainerAssignment], now: PodAllocation | None, topology: Topology
) -> list[ContainerAssignment]:
    claimed = [one for one in before if one.claimed]
    made = entries_of((now,), topology) if now is not None else ()
    marked = {one.container: one for one in before if not one.claimed}
    entries = [
        replace(one, outdated=marked[one.container].outdated) if one.container in marked else one
        for one in made
    ]
    return [*entries, *claimed]
