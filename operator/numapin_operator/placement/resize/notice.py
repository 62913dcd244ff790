"""Containers that shrink keep the CPUs that they give back until they have had notice.

Such an entry is that of a container that is moved to nowhere (see `assignment.moving`): the same
steps end it.
"""

from collections.abc import Mapping

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_operator.placement.allocations import ContainerAllocation
from numapin_operator.placement.assignment.entries import allocation_of
from numapin_operator.placement.assignment.moving import giving_back
from numapin_operator.placement.assignment.size_limit import SizeLimit
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.resize.demand import may_differ
from numapin_operator.placement.resize.pod import PodResize

Entries = dict[str, list[ContainerAssignment]]


def with_notice(
    policy: NodePolicy, kept: Entries, pods: Mapping[str, PodView], room: SizeLimit
) -> Entries:
    """The entries that stay, with what containers that shrink will have to give back.

    They are as they were if the policy gives no notice.

    A container that leaves exclusivity is not concerned: it may use the same CPUs after that. Pods
    with resources as a whole, and containers for whose move the assignment has no room, shrink at
    once.

    Args:
        policy: what governs the node.
        kept: the entries, by pod.
        pods: the pods of the node by UID; entries of others stay.
        room: how much the assignment still takes beside the entries.
    """
    if not policy.gives_notice:
        return kept
    return {
        uid: _entries(policy, pods[uid], entries, room) if uid in pods else entries
        for uid, entries in kept.items()
    }


def _entries(
    policy: NodePolicy, pod: PodView, entries: list[ContainerAssignment], room: SizeLimit
) -> list[ContainerAssignment]:
    own = [one for one in entries if not one.claimed]
    if pod.pod_level is not None or not own or any(one.moving for one in own):
        return entries
    if not may_differ(pod, has := allocation_of(pod.uid, own)):
        return entries
    alone = Node(policy)
    alone.adopt(has)
    PodResize(alone, pod).shrink()
    shrunk = alone.allocations.get(pod.uid)
    after = {one.name: one for one in shrunk.containers} if shrunk else {}
    found = []
    for one in entries:
        left = None if one.claimed else after.get(one.container)
        changed = _giving_back(one, left) if left is not None else None
        found.append(changed if changed is not None and room.replace(one, changed) else one)
    return found


def _giving_back(
    entry: ContainerAssignment, after: ContainerAllocation
) -> ContainerAssignment | None:
    """The entry with what it must give back; None if it gives back nothing, or all."""
    if not (entry.exclusive and after.cpus) or after.cpu_set == entry.cpus:
        return None
    return giving_back(entry, after.cpu_set, tuple(map(CpuSet.from_mask, after.grants)))
