"""A policy, a topology, pods and the assignment in force become the next NodeAssignment."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import (
    ContainerAssignment,
    NodeAssignmentSpec,
    Pools,
    Refusal,
)
from numapin_api.topology import Topology
from numapin_operator.placement.assignment_entries import allocation_of, entries_of, on_this_machine
from numapin_operator.placement.errors import PlacementError, PolicyError
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.node import Node
from numapin_operator.placement.policy import NodePolicy, resolve
from numapin_operator.placement.requests import PodView

_LONGEST_MESSAGE: Final = 2048


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that keeps CPUs which the policy reserves by now, until it ends."""

    namespace: str
    pod: str
    container: str
    cpus: CpuSet


@dataclass(frozen=True, slots=True)
class Plan:
    """The next assignment.

    `waiting` is what stands in the way of the policy as it is now. `queued` are the pods, as
    namespace/name, that get theirs as soon as pods that are ending let go of it.
    """

    spec: NodeAssignmentSpec
    waiting: tuple[Waiting, ...] = ()
    queued: tuple[str, ...] = ()


def plan_node(
    topology: Topology,
    policy: CpuPolicySpec,
    previous: NodeAssignmentSpec | None,
    pods: Sequence[PodView],
    running: frozenset[str],
) -> Plan:
    """Decide what one node's containers get. Equal input gives equal output.

    What `previous` says stays as it is: containers keep what they have, and pods refused before
    stay refused (leave `refused` out of `previous` to have them tried again). Pods that are in
    neither are placed in the order given. One that finds no room only because of pods that are
    ending is neither placed nor refused yet: a pod that replaces another would be shut out for good
    by the moment in which both are there. A pod's CPUs and memory are released when it has ended or
    is gone from `pods` and its UID is not in `running`; an ordinary init container's when it ended.

    Args:
        topology: the machine.
        policy: in force there, with the reserved CPUs settled (see `with_reserved`).
        previous: the assignment that is in force; None on a node that has none.
        pods: every pod bound to the node, in the order in which they are to be placed.
        running: UIDs of the pods whose cgroups still exist on the node.

    Returns:
        The spec without `policy`, which the caller knows, and what the policy still waits for.

    Raises:
        PolicyError: the policy cannot work on this machine; the last good spec should stay.
    """
    return plan_with(resolve(topology, policy), previous, pods, running)


def plan_with(
    policy: NodePolicy,
    previous: NodeAssignmentSpec | None,
    pods: Sequence[PodView],
    running: frozenset[str],
) -> Plan:
    """`plan_node` for a caller that keeps the resolved policy."""
    alive = {pod.uid: pod for pod in pods if not pod.terminal or pod.uid in running}
    node = Node(policy)
    kept = _kept(policy.topology, previous, alive, running)
    for uid, entries in kept.items():
        node.adopt(allocation_of(uid, entries))
    refused = {
        refusal.pod_uid: refusal
        for refusal in (previous.refused if previous else ())
        if refusal.pod_uid in alive
    }
    unplaced = list(_unplaced(node, pods, refused))
    later = _without_ending(node, alive) if unplaced else None
    queued: list[str] = []
    for pod, problem in unplaced:
        if later is not None and _finds_room(later, pod):
            queued.append(f"{pod.namespace}/{pod.name}")
        else:
            refused[pod.uid] = _refusal(pod, problem)
    placed = [allocation for uid, allocation in node.allocations.items() if uid not in kept]
    containers = (*chain.from_iterable(kept.values()), *entries_of(placed, policy.topology))
    spec = _spec(policy, node, containers, tuple(refused.values()))
    return Plan(spec, tuple(_waiting(policy, node)), tuple(queued))


def _unplaced(
    node: Node, pods: Sequence[PodView], refused: Container[str]
) -> Iterator[tuple[PodView, PlacementError]]:
    """Place every pod that is new; gives those that cannot be placed."""
    for pod in pods:
        if pod.uid not in node.allocations and pod.uid not in refused and node.wants(pod):
            try:
                node.place(pod)
            except PlacementError as problem:
                yield pod, problem


def _without_ending(node: Node, alive: dict[str, PodView]) -> Node | None:
    """The node once the pods that are ending are gone; None where none is."""
    staying = [
        allocation
        for uid, allocation in node.allocations.items()
        if (holder := alive.get(uid)) and not (holder.terminal or holder.deleting)
    ]
    if len(staying) == len(node.allocations):
        return None
    later = Node(node.policy)
    for allocation in staying:
        later.adopt(allocation)
    return later


def _finds_room(node: Node, pod: PodView) -> bool:
    """Place a pod if it can be."""
    try:
        node.place(pod)
    except PlacementError:
        return False
    return True


def _kept(
    topology: Topology,
    previous: NodeAssignmentSpec | None,
    alive: dict[str, PodView],
    running: frozenset[str],
) -> dict[str, list[ContainerAssignment]]:
    """What of the previous assignment is still held, by pod, in its order."""
    held: dict[str, list[ContainerAssignment]] = {}
    for entry in previous.containers if previous else ():
        pod = alive.get(entry.pod_uid)
        if pod is None and entry.pod_uid not in running:
            continue
        still = on_this_machine(entry, topology)
        if still is not None and entry.container not in _ended(pod):
            held.setdefault(entry.pod_uid, []).append(still)
    return held


def _ended(pod: PodView | None) -> frozenset[str]:
    """The init containers whose share is free again; none where the pod holds it as a whole."""
    if pod is None or pod.pod_level is not None:
        return frozenset()
    return frozenset([container.name for container in pod.containers if container.ended])


def _spec(
    policy: NodePolicy,
    node: Node,
    containers: tuple[ContainerAssignment, ...],
    refused: tuple[Refusal, ...],
) -> NodeAssignmentSpec:
    held = NO_CPUS
    for allocation in node.allocations.values():
        held |= allocation.cpus
    return NodeAssignmentSpec(
        mode=policy.spec.mode,
        pools=Pools(
            reserved=CpuSet.from_mask(policy.reserved & ~held),
            shared=CpuSet.from_mask(node.cpus.shared or _last_resort(policy, held)),
        ),
        cpu_quota=policy.spec.cpu_quota,
        isolation=policy.spec.isolation,
        containers=containers,
        refused=refused,
    )


def _last_resort(policy: NodePolicy, held: CpuMask) -> CpuMask:
    """The shared pool where containers from before hold every CPU that it should have.

    Strictly reserved CPUs serve everybody else until one of those containers ends.
    """
    left = policy.cpu_groups.cpus & ~held
    if not left:
        raise PolicyError(
            "reserved", "containers hold every CPU that is online; bring CPUs online or end one"
        )
    return left


def _refusal(pod: PodView, error: PlacementError) -> Refusal:
    return Refusal(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=error.container,
        reason=error.reason,
        message=str(error)[:_LONGEST_MESSAGE],
    )


def _waiting(policy: NodePolicy, node: Node) -> Iterator[Waiting]:
    withheld = policy.reserved if node.cpus.shared else CpuMask(-1)
    for allocation in node.allocations.values():
        for container in allocation.containers:
            if overlap := container.cpus & withheld:
                yield Waiting(
                    allocation.namespace,
                    allocation.pod,
                    container.name,
                    CpuSet.from_mask(overlap),
                )
