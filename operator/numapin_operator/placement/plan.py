"""A policy, a topology, pods and the assignment in force become the next NodeAssignment."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import MAX_REFUSED_RESIZES
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    NodeAssignmentSpec,
    Pools,
    Refusal,
)
from numapin_api.topology import Topology
from numapin_operator.placement.assignment.claimed import (
    claimed_cpus,
    in_order,
)
from numapin_operator.placement.assignment.entries import (
    refusal_of,
)
from numapin_operator.placement.assignment.refusals import (
    in_earlier_order,
    releases,
    requested_of,
    standing,
    steady,
)
from numapin_operator.placement.assignment.size_limit import SizeLimit
from numapin_operator.placement.assignment.start_gate import start_gate_of, unassigned
from numapin_operator.placement.assignment.system import cache_of, confined_pods, system_of
from numapin_operator.placement.devicemanager.given import AwaitsDevices, hold_awaiting
from numapin_operator.placement.errors import PolicyError
from numapin_operator.placement.machine.in_use import (
    account_unbound,
    held_hugepages,
    running_unbound,
    withhold,
)
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.moves.beginning import MoveRules, Starter
from numapin_operator.placement.moves.making_room import RoomMaker, in_motion
from numapin_operator.placement.moves.renewal import Renewal
from numapin_operator.placement.new_pods.placing import MORE_TRIED, place_new
from numapin_operator.placement.new_pods.queue import Queue, Queued
from numapin_operator.placement.outdated import Outdated
from numapin_operator.placement.policy.admission import Unaccepted, hold_unaccepted
from numapin_operator.placement.policy.node_policy import NodePolicy, resolve
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.resize.node import resize_pods, resized_entries
from numapin_operator.placement.resize.settled import Settled, size_limit
from numapin_operator.placement.staying import (
    held_cpus,
    node_with_entries,
    staying,
    without,
)

Waiting = Queued | Unaccepted | AwaitsDevices
"""A pod that waits."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next assignment.

    Attributes:
        spec: what the enforcer must enforce.
        queued: pods that fit once pods that are ending have been released, in their order.
        outdated: containers that the policy would not place as they are; see `mark_outdated`.
        unaccepted: pods that the kubelet is about to refuse; see `hold_unaccepted`.
        awaiting: pods that are not placed before it is known which devices they have.
        settled: the pods of which nothing changes, by UID.
    """

    spec: NodeAssignmentSpec
    queued: tuple[Queued, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    unaccepted: tuple[Unaccepted, ...] = ()
    awaiting: tuple[AwaitsDevices, ...] = ()
    settled: Mapping[str, Settled] = field(default_factory=dict, repr=False, compare=False)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The pods that may get CPUs later."""
        return (*self.queued, *self.unaccepted, *self.awaiting)


def plan_node(
    topology: Topology,
    policy: CpuPolicySpec,
    previous: NodeAssignmentSpec | None,
    pods: Sequence[PodView],
    running: frozenset[str],
) -> Plan:
    """Decide what one node's containers get. Equal input gives equal output.

    Earlier decisions stand: containers keep what `previous` gives them, and refused pods stay
    refused (leave `refused` out of `previous` to try them again). Only a resize that the kubelet
    has granted changes what a container has: see `resize`. New pods are placed in the order
    given. A new pod that does not fit only because of pods that are ending is queued, not refused:
    otherwise a pod that replaces another would stay refused. No younger pod gets what it waits
    for. A pod's CPUs and memory are released once it has ended or is not in `pods`, and its UID is
    not in `running`; those of an
    ordinary init container once it has ended.

    The spec stays within what etcd takes: a pod whose containers it has no room for is refused. A
    refusal that `refused` has no room for does not stand: the pod is tried again at each plan, or
    not at all if there are very many.

    Args:
        topology: the machine.
        policy: the policy that governs the node, with its reserved CPUs (see `with_reserved`).
        previous: the assignment so far; None if there is none.
        pods: every pod bound to the node, in the order of placement.
        running: UIDs of the pods whose cgroups still exist on the node.

    Returns:
        The spec without its `policy`, which the caller adds, and what is waiting.

    Raises:
        PolicyError: the policy cannot work on this machine; keep the last good spec.
    """
    return plan_with(resolve(topology, policy), previous, pods, running)


def plan_with(
    policy: NodePolicy,
    previous: NodeAssignmentSpec | None,
    pods: Sequence[PodView],
    running: frozenset[str],
    moves: MoveRules | None = None,
) -> Plan:
    """`plan_node` with a policy that is resolved already.

    With `moves`, containers may begin to move: so that a pod fits, or else because the policy would
    place them otherwise. A refused pod for which moves may help is tried again at each plan.
    """
    pods, unaccepted = hold_unaccepted(pods, policy.allocatable, _decided(previous, pods))
    pods, awaiting = hold_awaiting(pods, policy.devices)
    alive = {pod.uid: pod for pod in pods if not pod.terminal or pod.uid in running}
    kept, settled = staying(policy, previous, alive, running)
    motion = in_motion(others := without(kept, settled))
    policy = replace(policy, claimed=CpuMask(claimed_cpus(others).mask) | motion.leaving)
    node = node_with_entries(policy, kept, settled)
    refused = dict(_tried_again(standing(previous, alive), moves))
    account_unbound(node, unbound := running_unbound(node, alive, refused, settled))
    withhold(node, held := held_hugepages(node))
    may_resize = without(alive, settled)
    resized = resize_pods(node, without(may_resize, motion.after).values())
    kept = resized_entries(kept, node, resized.pods)
    room = size_limit(kept, settled)
    queue = Queue(node, alive, unbound, held, motion)
    starter = Starter(kept, queue, room, moves) if moves else None
    make_room = RoomMaker(starter).make_room if starter else None
    trial = place_new(_not_in(pods, settled), refused, room, queue, make_room)
    if starter and starter.may_begin:
        Renewal(starter).begin()
    queue.give_back()
    refused |= {
        pod.uid: refusal_of(pod, problem, requested_of(pod)) for pod, problem in trial.failed
    }
    spec = _spec(policy, node, held_cpus(policy, node, settled), in_order(kept, trial.entries))
    spec = _with_refusals(spec, refused, resized.refused, room, previous)
    spec = _with_start_gate(spec, policy, pods, [one.pod.uid for one in queue.waiting])
    omitted = (spec.refused_omitted or 0) + trial.untried or None
    confined = confined_pods(policy.spec.pods, spec, alive.values())
    spec = replace(spec, refused_omitted=omitted, confined=confined)
    as_before = {} if starter and starter.begun else settled
    return Plan(spec, tuple(queue.waiting), (), unaccepted, awaiting, as_before)


def _with_start_gate(
    spec: NodeAssignmentSpec, policy: NodePolicy, pods: Iterable[PodView], waiting: Iterable[str]
) -> NodeAssignmentSpec:
    """The spec with the pods for which the node's enforcer must wait, and must not."""
    gate = start_gate_of(policy.spec, binds_memory=policy.binds_memory)
    if gate is None:
        return spec
    assigned = (one.pod_uid for one in spec.containers)
    decided = frozenset((*assigned, *(one.pod_uid for one in spec.refused), *waiting))
    return replace(spec, start_gate=gate, unassigned=unassigned(gate, pods, decided))


def _with_refusals(
    spec: NodeAssignmentSpec,
    refused: Mapping[str, Refusal],
    resizes: Iterable[Refusal],
    room: SizeLimit,
    previous: NodeAssignmentSpec | None,
) -> NodeAssignmentSpec:
    """The spec with what pods could not get, as far as there is room."""
    earlier = previous
    if previous and (previous.refused or previous.refused_resizes):
        earlier = None if releases(previous, spec.containers) else previous
    waiting = steady(resizes, earlier.refused_resizes if earlier else ())
    pods = steady(in_earlier_order(refused, previous), earlier.refused if earlier else ())
    listed_resizes = room.take_refused(waiting, MAX_REFUSED_RESIZES) or None
    listed = room.take_refused(pods)
    return replace(
        spec,
        refused=listed,
        refused_omitted=len(pods) - len(listed) or None,
        refused_resizes=listed_resizes,
    )


def _tried_again(
    refused: Iterable[tuple[str, Refusal]], moves: MoveRules | None
) -> Iterator[tuple[str, Refusal]]:
    """The refusals that stand: those of pods for which moves may help are tried again."""
    left = MORE_TRIED if moves else 0
    for uid, one in refused:
        if left and one.reason == Reason.TOPOLOGY_AFFINITY_ERROR:
            left -= 1
        else:
            yield uid, one


def _decided(previous: NodeAssignmentSpec | None, pods: Iterable[PodView]) -> frozenset[str]:
    """The pods about which the previous assignment says anything, if one is not accepted yet."""
    if previous is None or all(pod.checked for pod in pods):
        return frozenset()
    return frozenset(
        [*(one.pod_uid for one in previous.containers), *(one.pod_uid for one in previous.refused)]
    )


def _not_in(pods: Iterable[PodView], settled: Collection[str]) -> list[PodView]:
    return [pod for pod in pods if pod.uid not in settled]


def _spec(
    policy: NodePolicy, node: Node, held: CpuMask, containers: tuple[ContainerAssignment, ...]
) -> NodeAssignmentSpec:
    return NodeAssignmentSpec(
        mode=policy.spec.mode,
        pools=Pools(
            reserved=CpuSet.from_mask(policy.reserved & ~held),
            shared=CpuSet.from_mask(node.cpus.shared or _last_resort(policy, held)),
        ),
        cpu_quota=policy.spec.cpu_quota,
        isolation=policy.spec.isolation,
        system=system_of(policy.spec.system),
        cache=cache_of(policy.spec.cache),
        containers=containers,
    )


def _last_resort(policy: NodePolicy, held: CpuMask) -> CpuMask:
    """The shared pool if earlier containers hold every CPU that belongs in it.

    Strictly reserved CPUs are shared then, until one of those containers ends.
    """
    left = policy.cpu_groups.cpus & ~held
    if not left:
        raise PolicyError(
            "reserved",
            "containers hold every CPU that is online; bring CPUs online or end a container",
        )
    return left
