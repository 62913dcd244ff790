"""Where a plan begins: the entries that stay, and what the pods of a node have by them.

`present_node` is where it ends: the node as an assignment leaves it.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import filterfalse
from operator import is_
from typing import TypeVar

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.placement.allocations import Block, PodAllocation
from numapin_operator.placement.assignment.claimed import claimed_cpus, with_claimed
from numapin_operator.placement.assignment.entries import allocation_of
from numapin_operator.placement.assignment.kept import Entries, entries_by_pod, kept_entries
from numapin_operator.placement.assignment.moving import leaving_cpus
from numapin_operator.placement.machine.in_use import (
    account_unbound,
    held_hugepages,
    running_unbound,
    withhold,
)
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.within_memory import within_memory
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.resize.notice import with_notice
from numapin_operator.placement.resize.run_again import with_run_again
from numapin_operator.placement.resize.settled import Settled, settled_pods, size_limit

_V = TypeVar("_V")


def staying(
    policy: NodePolicy,
    previous: NodeAssignmentSpec | None,
    alive: Mapping[str, PodView],
    running: frozenset[str],
) -> tuple[Entries, Mapping[str, Settled]]:
    """The entries with which the plan begins, by pod: what stays, and what was claimed.

    With them the pods of which nothing changes: most steps of a plan leave them out.
    """
    held = entries_by_pod(previous)
    settled = settled_pods(held, alive, policy.topology)
    before = kept_entries(policy.topology, held, alive, running, settled)
    kept = within_memory(before, policy.topology)
    if len(kept) != len(before) or not all(map(is_, kept.values(), before.values())):
        settled = {uid: one for uid, one in settled.items() if kept.get(uid) is before[uid]}
    others = without(alive, settled)
    if any(uid in kept for uid in others):
        kept = with_run_again(policy.cpu_groups, kept, others)
    if _any_claimed(without(kept, settled), others.values()):
        shared = CpuSet.from_mask(policy.all_shared)
        kept = with_claimed(kept, alive.values(), policy.claims, shared)
    if policy.gives_notice:
        kept = with_notice(policy, kept, others, size_limit(kept, settled))
    return kept, settled


def _any_claimed(kept: Mapping[str, list[ContainerAssignment]], pods: Iterable[PodView]) -> bool:
    """Whether a DRA driver gives CPUs to a container, or gave some."""
    has_claimed = any(one.claimed for listed in kept.values() for one in listed)
    return has_claimed or any(pod.has_cpu_claims for pod in pods)


def without(by_uid: Mapping[str, _V], settled: Collection[str]) -> dict[str, _V]:
    """What belongs to other pods than these."""
    return {uid: by_uid[uid] for uid in filterfalse(settled.__contains__, by_uid)}


def node_with_entries(policy: NodePolicy, kept: Entries, settled: Mapping[str, Settled]) -> Node:
    """The node with what its pods have."""
    allocations, cpus, memory = dict[str, PodAllocation](), NO_CPUS, list[Block]()
    for uid, listed in kept.items():
        if known := settled.get(uid):
            allocations[uid] = known.allocation
            cpus |= known.cpus
            memory += known.memory
        elif own := [one for one in listed if not one.claimed]:
            allocations[uid] = has = allocation_of(uid, own)
            cpus |= has.cpus
            memory += has.memory
    node = Node(policy)
    node.adopt_all(allocations, cpus, memory)
    return node


def held_cpus(policy: NodePolicy, node: Node, settled: Mapping[str, Settled]) -> CpuMask:
    """Every CPU that a container has to itself."""
    held = policy.claimed
    for one in settled.values():
        held |= one.cpus
    for allocation in without(node.allocations, settled).values():
        held |= allocation.cpus
    return held


def present_node(
    policy: NodePolicy, spec: NodeAssignmentSpec, pods: Iterable[PodView], running: frozenset[str]
) -> Node:
    """The node with all that is given out; nothing can be placed on it that the next plan refuses.

    Args:
        policy: the policy on the machine, with what the enforcer reports.
        spec: the assignment.
        pods: the pods that are bound to the node, marked by the policy's selectors.
        running: UIDs of the pods whose cgroups still exist.
    """
    held = entries_by_pod(spec)
    taken = claimed_cpus(held) | leaving_cpus(spec.containers)
    node = node_with_entries(replace(policy, claimed=CpuMask(taken.mask)), held, {})
    alive = {pod.uid: pod for pod in pods if not pod.terminal or pod.uid in running}
    refused = frozenset(one.pod_uid for one in spec.refused)
    account_unbound(node, running_unbound(node, alive, refused, ()))
    withhold(node, held_hugepages(node))
    return node
