"""Decide what a NodeAssignment must say, from policies, topology, pods and its present state.

Does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.nodeassignment import NodeAssignmentSpec, PolicyRef
from numapin_operator.nodes.moves.steps import advanced, move_rules, next_step_at
from numapin_operator.nodes.returning import before_plan, is_released
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView
from numapin_operator.placement import (
    Outdated,
    Plan,
    PodView,
    PolicyError,
    Queued,
    Unaccepted,
    free_hugepages,
    mark_outdated,
    plan_with,
    reservation_mismatch,
    reserved_offline,
    resolve,
    used_memory,
    with_reserved,
)
from numapin_operator.policies.status import (
    NodeOutcome,
    judge_enforcer,
    not_served,
    policy_fault,
    remarked,
    stalled,
    waiting,
)

NAMED: Final = 5
"""Containers and pods that a message names; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class NodePicture:
    """Everything that a decision about one node depends on.

    Attributes:
        name: the node's name.
        node: None if the Node was deleted.
        ranked: the policies that select it, the governing one first.
        assignment: its NodeAssignment; None if it does not exist.
        pods: the pods bound to it, marked by the governing policy's selectors.
        release_at: until when the assignment stays although no policy wants it; None if it need
            not.
        now: the time in seconds since 1970; None if no move may begin or go on.
        told: since when pods know which CPUs leave them; None if nothing waits for that.
    """

    name: str
    node: NodeView | None
    ranked: tuple[PolicyView, ...]
    assignment: AssignmentView | None
    pods: tuple[PodView, ...]
    release_at: str | None = None
    now: float | None = None
    told: Mapping[str, float] | None = None


class Write(Enum):
    """The write that a NodeAssignment needs."""

    NOTHING = "nothing"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, and the outcome of the governing policy.

    Attributes:
        write: the write that the NodeAssignment needs.
        spec: for CREATE and REPLACE; else None.
        outcome: None if no policy governs the node.
        waiting: pods that wait for ending or moving ones, or for their kubelet.
        again_at: when to decide again although nothing has happened; None if that is not needed.
    """

    write: Write
    spec: NodeAssignmentSpec | None = None
    outcome: NodeOutcome | None = None
    waiting: tuple[Queued | Unaccepted, ...] = ()
    again_at: float | None = None


def decide(picture: NodePicture) -> Decision:
    """Decide the next write to a node's assignment. Equal input gives equal output."""
    assignment = picture.assignment
    if picture.node is None:
        return Decision(Write.NOTHING if assignment is None else Write.DELETE)
    if not picture.ranked:
        return _retire(assignment, picture.release_at)
    governing = picture.ranked[0]
    if fault := policy_fault(governing):
        return Decision(Write.NOTHING, outcome=stalled(governing, picture.name, *fault))
    if assignment is not None and assignment.problem is not None:
        reason, problem = Reason.INVALID_ASSIGNMENT, assignment.problem
        return Decision(Write.NOTHING, outcome=stalled(governing, picture.name, reason, problem))
    return _govern(picture, picture.node, governing)


def _retire(assignment: AssignmentView | None, release_at: str | None) -> Decision:
    """No policy governs the node any more: release its cgroups, then delete the assignment.

    The spec is first replaced by mode None, so that the enforcer releases every cgroup. The
    assignment is deleted when the enforcer reports that this is done, or at once if it never had
    pools. While the enforcer does not run, the node and its assignment stay as they are.
    """
    if assignment is None or assignment.deleting:
        return Decision(Write.NOTHING)
    if assignment.spec.pools is None and assignment.status.observed_generation == 0:
        return Decision(Write.DELETE)
    if release_at is not None:
        if assignment.problem is not None or assignment.spec.release_at == release_at:
            return Decision(Write.NOTHING)
        announced = assignment.spec.model_copy(update={"release_at": release_at})
        return Decision(Write.REPLACE, announced)
    released = NodeAssignmentSpec(mode="None")
    if assignment.spec != released:
        return Decision(Write.REPLACE, released)
    return Decision(Write.DELETE if is_released(assignment) else Write.NOTHING)


def _govern(picture: NodePicture, node: NodeView, governing: PolicyView) -> Decision:
    if node.problem is not None:
        outcome = stalled(governing, picture.name, Reason.IMPOSSIBLE_ON_NODE, node.problem)
        return Decision(Write.NOTHING, outcome=outcome)
    try:
        plan = _plan(picture, node, governing)
    except PolicyError as error:
        outcome = stalled(governing, picture.name, Reason.IMPOSSIBLE_ON_NODE, str(error))
        return Decision(Write.NOTHING, outcome=outcome)
    assignment = picture.assignment
    outcome = _counted(_outcome(picture, node, governing, plan), plan)
    if assignment is None:
        return Decision(Write.CREATE, plan.spec, outcome, plan.waiting)
    if assignment.deleting:
        return Decision(Write.NOTHING, outcome=outcome)
    again_at = None
    if picture.now is not None:
        again_at = next_step_at(plan.spec, governing.spec, plan.waiting, picture.now, picture.told)
    if assignment.spec == plan.spec and assignment.owner_uid == node.uid:
        return Decision(Write.NOTHING, None, outcome, plan.waiting, again_at)
    return Decision(Write.REPLACE, plan.spec, outcome, plan.waiting, again_at)


def _plan(picture: NodePicture, node: NodeView, governing: PolicyView) -> Plan:
    """The next spec; it has no pools and no containers until the hardware is known.

    Pods that an older generation of the policy refused are tried again.
    """
    before = picture.assignment
    reference = PolicyRef(
        name=governing.name, generation=governing.generation, uid=governing.uid or None
    )
    plan = _plan_for(picture, node, governing, reference)
    if picture.release_at is None and plan.spec.release_at is not None:
        plan = replace(plan, spec=plan.spec.model_copy(update={"release_at": None}))
    if before is not None and _is_settled(before.spec, plan.spec):
        return replace(plan, spec=before.spec)
    return replace(plan, spec=_with_since(before, plan.spec))


def _with_since(before: AssignmentView | None, planned: NodeAssignmentSpec) -> NodeAssignmentSpec:
    """The spec with the generation of the NodeAssignment from which its settings are written.

    The API server counts each change of a spec, and the write is refused if another one came
    first, so the next generation is known.
    """
    if before is None:
        since: int | None = 1
    elif _same_settings(before.spec, planned):
        since = before.spec.policy.since if before.spec.policy else None
    else:
        since = before.generation + 1
    reference = planned.policy.model_copy(update={"since": since}) if planned.policy else None
    return planned.model_copy(update={"policy": reference})


def _same_settings(one: NodeAssignmentSpec, other: NodeAssignmentSpec) -> bool:
    """Whether the policy says the same about the node in both, whatever pods add."""
    same = one.policy is other.policy or _same_generation(one.policy, other.policy)
    return same and _settings(one) == _settings(other)


def _settings(spec: NodeAssignmentSpec) -> tuple[object, ...]:
    return (
        spec.mode,
        spec.pools.reserved if spec.pools else None,
        spec.cpu_quota,
        spec.isolation,
    )


def _is_settled(written: NodeAssignmentSpec, planned: NodeAssignmentSpec) -> bool:
    """Whether two specs differ by no more than the generation of their policy.

    An edit that changes nothing for a node must not rewrite its assignment. Refused pods were
    tried again, so that the generation must be written: else they are tried again at each plan.
    """
    if written.policy is None or planned.policy is None or written.refused:
        return False
    same_policy = written.policy.name == planned.policy.name
    return same_policy and written == planned.model_copy(update={"policy": written.policy})


def _plan_for(
    picture: NodePicture, node: NodeView, governing: PolicyView, reference: PolicyRef
) -> Plan:
    assignment, policy = picture.assignment, governing.spec
    if policy.mode == "None":
        if assignment is not None and picture.release_at is not None:
            return Plan(assignment.spec.model_copy(update={"release_at": picture.release_at}))
        return Plan(NodeAssignmentSpec(policy=reference, mode="None"))
    if assignment is None or assignment.topology is None:
        previous = assignment.spec if assignment else NodeAssignmentSpec()
        if previous.pools is not None:
            return Plan(previous)
        return Plan(NodeAssignmentSpec(policy=reference, mode=policy.mode))
    binds_memory = policy.memory.policy != "None"
    pods = sorted(picture.pods, key=lambda pod: (*pod.order, pod.uid))
    previous = before_plan(assignment, pods, binds_memory=binds_memory)
    if picture.now is not None:
        previous = advanced(previous, assignment, policy, picture.now, picture.told)
    edited = not _same_generation(previous.policy, reference)
    if edited:
        previous = previous.model_copy(update={"refused": (), "refused_resizes": None})
    resolved = resolve(assignment.topology, with_reserved(policy, assignment.topology, node.system))
    plan = plan_with(
        replace(
            resolved,
            free_hugepages=free_hugepages(assignment.status.free_hugepages),
            allocatable=node.allocatable,
            used_memory=used_memory(assignment.status.unbound_memory),
            claims={one.claim_uid: one.cpus for one in assignment.status.claims},
            gives_notice=picture.told is not None and picture.now is not None,
        ),
        previous,
        pods,
        frozenset(assignment.status.running),
        move_rules(assignment, policy, pods, picture.now) if picture.now else None,
    )
    spec, outdated = mark_outdated(resolved, plan.spec, pods, edited=edited)
    return replace(plan, spec=spec.model_copy(update={"policy": reference}), outdated=outdated)


def _same_generation(one: PolicyRef | None, other: PolicyRef | None) -> bool:
    """Whether both name the same state of a policy; an unset UID may be any."""
    if one is None or other is None:
        return False
    same_object = one.uid is None or other.uid is None or one.uid == other.uid
    return same_object and (one.name, one.generation) == (other.name, other.generation)


def _is_written(written: PolicyRef | None, planned: PolicyRef | None) -> bool:
    """Whether an assignment has the settings of the policy that is planned."""
    if written is None or planned is None:
        return written is planned
    return _same_generation(written, planned) and written.since == planned.since


def _counted(outcome: NodeOutcome, plan: Plan) -> NodeOutcome:
    refused = len(plan.spec.refused) + (plan.spec.refused_omitted or 0)
    return replace(outcome, refused=refused, outdated=len(plan.outdated))


def _outcome(
    picture: NodePicture, node: NodeView, governing: PolicyView, plan: Plan
) -> NodeOutcome:
    """The outcome of the policy on this node, once `plan` is written."""
    name, assignment = picture.name, picture.assignment
    if node.not_served is not None:
        return not_served(governing, name, node.not_served, "")
    if wait := _unanswered(picture, governing, plan):
        return waiting(governing, name, *wait)
    assert assignment is not None
    outcome = judge_enforcer(governing, assignment)
    if plan.outdated and outcome.reason == Reason.IN_FORCE:
        return waiting(
            governing,
            name,
            Reason.WAITING_FOR_CONTAINERS,
            _named(plan.outdated, is_dynamic=governing.spec.mode == "Dynamic"),
        )
    if outcome.reason == Reason.IN_FORCE:
        if offline := reserved_offline(governing.spec, assignment.topology):
            return remarked(outcome, Reason.RESERVED_CPUS_OFFLINE, offline)
        differs = reservation_mismatch(governing.spec, node.system)
        return remarked(outcome, Reason.MEMORY_RESERVATION_DIFFERS, differs)
    return outcome


def _unanswered(
    picture: NodePicture, governing: PolicyView, plan: Plan
) -> tuple[Reason, str] | None:
    """Why the enforcer cannot have accepted the policy yet; None if it can."""
    assignment = picture.assignment
    if picture.release_at is not None:
        delay = governing.spec.release_delay
        message = (
            f"the CPUs are given back at {picture.release_at}, when spec.releaseDelay, {delay}, "
            "has passed"
        )
        return Reason.RELEASE_DELAYED, message
    if governing.spec.mode != "None" and (assignment is None or assignment.topology is None):
        return Reason.WAITING_FOR_TOPOLOGY, "the enforcer has not reported the hardware yet"
    if assignment is None or not _is_written(assignment.spec.policy, plan.spec.policy):
        message = "the enforcer has not reported on the newest assignment yet"
        return Reason.WAITING_FOR_ENFORCER, message
    return None


def _named(containers: Sequence[Outdated], *, is_dynamic: bool) -> str:
    """Name the containers that the policy would not place as they are."""
    named = [f"{one.namespace}/{one.pod}/{one.container} {one.why}" for one in containers]
    until = "they end or can be moved" if is_dynamic else "they end"
    return f"containers keep what they have until {until}: {_first_names(named)}"


def _first_names(named: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more
