"""Decide what a NodeAssignment must say, from policies, topology, pods and its present state.

Does no I/O.
"""

from dataclasses import replace
from operator import attrgetter

from numapin_api.conditions.reasons import Reason
from numapin_api.hardware.layout import layout_digest
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, PolicyRef
from numapin_api.topology import Topology
from numapin_operator.nodes.decide.decision import Decision, NodePicture, Write
from numapin_operator.nodes.decide.generations import is_settled, same_generation, with_since
from numapin_operator.nodes.decide.outcome import outcome_of
from numapin_operator.nodes.decide.returning import (
    as_admitted,
    before_plan,
    is_released,
    reports_running,
)
from numapin_operator.nodes.decide.waits import with_times
from numapin_operator.nodes.moves.steps import advanced, move_rules, next_step_at
from numapin_operator.nodes.pausing import unless_paused
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.placement import (
    NodeDevices,
    NodePolicy,
    Plan,
    PolicyError,
    free_hugepages,
    mark_outdated,
    plan_with,
    resolve,
    used_memory,
    with_reserved,
)
from numapin_operator.policies.status import NodeOutcome, policy_fault, stalled


def decide(picture: NodePicture) -> Decision:
    """Decide the next write to a node's assignment. Equal input gives equal output."""
    decision = _without_old_release(picture, _decide(picture))
    return with_times(picture, unless_paused(picture, decision))


def _without_old_release(picture: NodePicture, decision: Decision) -> Decision:
    """Withdraw an announced release once a policy governs the node again, stalled or not.

    Else the next release would end at the old time.
    """
    before = picture.assignment
    if (
        decision.write is not Write.NOTHING
        or picture.release_at is not None
        or picture.node is None
        or not picture.ranked
        or before is None
        or before.deleting
        or before.problem is not None
        or before.spec.release_at is None
    ):
        return decision
    spec = replace(before.spec, release_at=None)
    return replace(decision, write=Write.REPLACE, spec=spec)


def _decide(picture: NodePicture) -> Decision:
    assignment = picture.assignment
    if picture.node is None:
        stays = assignment is None or picture.stays_until is not None
        return Decision(Write.NOTHING if stays else Write.DELETE, again_at=picture.stays_until)
    if not picture.ranked:
        return _retire(assignment, picture)
    governing = picture.ranked[0]
    if fault := policy_fault(governing):
        return _unchanged(picture, stalled(governing, picture.name, *fault))
    if assignment is not None and assignment.problem is not None:
        reason, problem = Reason.INVALID_ASSIGNMENT, assignment.problem
        return Decision(Write.NOTHING, outcome=stalled(governing, picture.name, reason, problem))
    return _govern(picture, picture.node, governing)


def _unchanged(picture: NodePicture, outcome: NodeOutcome) -> Decision:
    """The node keeps its assignment; one that was deleted is made again as it was."""
    if picture.assignment is None and picture.lost is not None:
        return Decision(Write.CREATE, picture.lost, outcome)
    return Decision(Write.NOTHING, outcome=outcome)


def _retire(assignment: AssignmentView | None, picture: NodePicture) -> Decision:
    """No policy governs the node any more: release its cgroups, then delete the assignment.

    The spec is first replaced by mode None, so that the enforcer releases every cgroup. The
    assignment is deleted when the enforcer reports that this is done, or at once if it has no
    pools and no enforcer has reported on it. While the enforcer does not run, the node and its
    assignment stay as they are.
    """
    release_at = picture.release_at
    if assignment is None or assignment.deleting:
        return Decision(Write.NOTHING)
    if assignment.spec.pools is None and assignment.status.observed_generation == 0:
        return Decision(Write.DELETE)
    if release_at is not None:
        if assignment.problem is not None or assignment.spec.release_at == release_at:
            return Decision(Write.NOTHING)
        announced = replace(assignment.spec, release_at=release_at)
        return Decision(Write.REPLACE, announced)
    released = NodeAssignmentSpec(mode="None")
    if assignment.spec != released:
        is_unseen = assignment.status.observed_generation == 0
        # An assignment that no enforcer has seen can then be deleted.
        again_at = picture.now.monotonic if is_unseen and picture.now else None
        return Decision(Write.REPLACE, released, releasing=True, again_at=again_at)
    released_by_now = is_released(assignment)
    write = Write.DELETE if released_by_now else Write.NOTHING
    return Decision(write, releasing=not released_by_now)


def _govern(picture: NodePicture, node: NodeView, governing: PolicyView) -> Decision:
    if node.problem is not None:
        outcome = stalled(governing, picture.name, Reason.IMPOSSIBLE_ON_NODE, node.problem)
        return _unchanged(picture, outcome)
    try:
        plan = _plan(picture, node, governing)
    except PolicyError as error:
        outcome = stalled(governing, picture.name, Reason.IMPOSSIBLE_ON_NODE, str(error))
        return _unchanged(picture, outcome)
    assignment = picture.assignment
    outcome = outcome_of(picture, node, governing, plan)
    if assignment is None:
        return Decision(Write.CREATE, plan.spec, outcome, plan.waiting)
    if assignment.deleting:
        return Decision(Write.NOTHING, outcome=outcome)
    again_at = _next_step_at(picture, governing, plan)
    is_written = assignment.spec == plan.spec and assignment.owner_uid in (None, node.uid)
    if is_written and _has_form(assignment, as_lines=picture.as_lines):
        return Decision(Write.NOTHING, None, outcome, plan.waiting, again_at)
    return Decision(Write.REPLACE, plan.spec, outcome, plan.waiting, again_at)


def _has_form(assignment: AssignmentView, *, as_lines: bool) -> bool:
    """Whether the enforcer reads the form that is written; without pools both are the same."""
    return assignment.spec.pools is None or assignment.form.has_lines is as_lines


def _next_step_at(picture: NodePicture, governing: PolicyView, plan: Plan) -> float | None:
    """When a move can go on, or begin, by the monotonic clock."""
    now = picture.now
    if now is None:
        return None
    at = next_step_at(plan.spec, governing.spec, plan.waiting, now.unix, picture.told)
    return now.monotonic_at(at) if at is not None else None


def _plan(picture: NodePicture, node: NodeView, governing: PolicyView) -> Plan:
    """The next spec; it has no pools and no containers until the hardware is known.

    Pods that an older generation of the policy refused, or on another layout of the hardware, are
    tried again, and every container is compared with the policy.
    """
    before = picture.assignment
    topology = before.topology if before and governing.spec.mode != "None" else None
    reference = PolicyRef(
        name=governing.name,
        generation=governing.generation,
        uid=governing.uid or None,
        hardware=layout_digest(topology) if topology else None,
    )
    plan = _plan_for(picture, node, governing, reference)
    if picture.release_at is None and plan.spec.release_at is not None:
        plan = replace(plan, spec=replace(plan.spec, release_at=None))
    if before is not None:
        # A release that is withdrawn leaves the settings as they are too.
        kept = replace(before.spec, release_at=plan.spec.release_at)
        if is_settled(kept, plan.spec):
            return replace(plan, spec=kept)
    return replace(plan, spec=with_since(before, plan.spec))


def _lost(picture: NodePicture) -> NodeAssignmentSpec | None:
    """What the assignment said before it was lost; pods that were refused are tried again."""
    if picture.lost is None:
        return None
    return replace(picture.lost, refused=(), refused_resizes=None)


def _plan_for(
    picture: NodePicture, node: NodeView, governing: PolicyView, reference: PolicyRef
) -> Plan:
    assignment, lost = picture.assignment, _lost(picture)
    if assignment is not None and lost is not None:
        assignment = replace(assignment, spec=lost)
    topology = assignment.topology if assignment else None
    if governing.spec.mode == "None":
        return _released(picture, reference)
    if assignment is None or topology is None or not reports_running(assignment):
        previous = assignment.spec if assignment else lost or NodeAssignmentSpec()
        if previous.pools is not None:
            return Plan(previous)
        return Plan(NodeAssignmentSpec(policy=reference, mode=governing.spec.mode))
    return _plan_on(topology, assignment, picture, node, reference)


def _released(picture: NodePicture, reference: PolicyRef) -> Plan:
    """Mode None, or what stays until the release."""
    if picture.assignment is not None and picture.release_at is not None:
        return Plan(replace(picture.assignment.spec, release_at=picture.release_at))
    return Plan(NodeAssignmentSpec(policy=reference, mode="None"))


def as_reported(
    policy: NodePolicy,
    assignment: AssignmentView,
    node: NodeView,
    awaited: frozenset[str] = frozenset(),
) -> NodePolicy:
    """A policy on a machine with what the Node and its enforcer report of now.

    Pods of `awaited` are not placed before their devices are known.
    """
    devices, everywhere = assignment.status.devices, policy.hint_merger.everywhere
    return replace(
        policy,
        free_hugepages=free_hugepages(assignment.status.free_hugepages),
        allocatable=node.allocatable,
        used_memory=used_memory(assignment.status.unbound_memory),
        claims={one.claim_uid: one.cpus for one in assignment.status.claims},
        devices=NodeDevices(devices, everywhere, awaited) if devices is not None else None,
    )


def _plan_on(
    topology: Topology,
    assignment: AssignmentView,
    picture: NodePicture,
    node: NodeView,
    reference: PolicyRef,
) -> Plan:
    """The plan for hardware and containers that the enforcer has reported."""
    policy = picture.ranked[0].spec
    ordered = sorted(picture.pods, key=attrgetter("bound", "namespace", "name", "uid"))
    pods = as_admitted(assignment, ordered)
    previous = before_plan(assignment, pods, binds_memory=policy.memory.policy != "None")
    if picture.now is not None:
        previous = advanced(previous, assignment, policy, picture.now.unix, picture.told)
    edited = not same_generation(previous.policy, reference)
    if edited:
        previous = replace(previous, refused=(), refused_resizes=None)
    resolved = resolve(topology, with_reserved(policy, topology, node.system))
    gives_notice = picture.told is not None and picture.now is not None
    reported = as_reported(resolved, assignment, node, picture.await_devices)
    plan = plan_with(
        replace(reported, gives_notice=gives_notice),
        previous,
        pods,
        frozenset(assignment.status.running),
        move_rules(assignment, policy, pods, picture.now.unix) if picture.now else None,
    )
    spec, outdated = mark_outdated(resolved, plan.spec, pods, edited=edited, settled=plan.settled)
    return replace(plan, spec=replace(spec, policy=reference), outdated=outdated)
