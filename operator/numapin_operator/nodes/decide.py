"""Pure: policies, topologies, pods and what was decided before become NodeAssignments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from numapin_api.conditions import ConditionType, Reason, find
from numapin_api.nodeassignment import NodeAssignmentSpec, PolicyRef
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView
from numapin_operator.placement import Plan, PodView, PolicyError, Waiting, plan_node, with_reserved
from numapin_operator.policies.status import (
    NodeOutcome,
    judge_enforcer,
    policy_fault,
    stalled,
    waiting,
)

NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class NodePicture:
    """One node at one moment, whole.

    `node` is None when there is no such Node any more. `ranked` are the policies that select it,
    the governing one first. `pods` are those bound to it, marked by that policy's selectors.
    """

    name: str
    node: NodeView | None
    ranked: tuple[PolicyView, ...]
    assignment: AssignmentView | None
    pods: tuple[PodView, ...]


class Write(Enum):
    """What is to be done to a NodeAssignment."""

    NOTHING = "nothing"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, and what came of the governing policy so far.

    `spec` is there for CREATE and REPLACE; `outcome` is None where no policy governs the node.
    """

    write: Write
    spec: NodeAssignmentSpec | None = None
    outcome: NodeOutcome | None = None


def decide(picture: NodePicture) -> Decision:
    """What a node's assignment should be next. Equal input gives equal output."""
    assignment = picture.assignment
    if picture.node is None:
        return Decision(Write.NOTHING if assignment is None else Write.DELETE)
    if not picture.ranked:
        return _retire(assignment)
    governing = picture.ranked[0]
    if fault := policy_fault(governing):
        return Decision(Write.NOTHING, outcome=stalled(governing, picture.name, *fault))
    if assignment is not None and assignment.problem is not None:
        reason, problem = Reason.INVALID_ASSIGNMENT, assignment.problem
        return Decision(Write.NOTHING, outcome=stalled(governing, picture.name, reason, problem))
    return _govern(picture, picture.node, governing)


def _retire(assignment: AssignmentView | None) -> Decision:
    """No policy governs the node any more: give everything back, and only then let go.

    The assignment first says mode None, so that the enforcer gives every cgroup back, and is
    deleted when that enforcer reports having done so. One that never held anything goes at once.
    An enforcer that is away keeps its node as it is; the assignment waits for it.
    """
    if assignment is None or assignment.leaving:
        return Decision(Write.NOTHING)
    if assignment.spec.pools is None and assignment.status.observed_generation == 0:
        return Decision(Write.DELETE)
    released = NodeAssignmentSpec(mode="None")
    if assignment.spec != released:
        return Decision(Write.REPLACE, released)
    return Decision(Write.DELETE if _has_settled(assignment) else Write.NOTHING)


def _has_settled(assignment: AssignmentView) -> bool:
    """Whether the enforcer did all that the spec says, by its own account."""
    ready = find(assignment.status.conditions, ConditionType.READY)
    seen = assignment.status.observed_generation == assignment.generation
    return seen and ready is not None and ready.status == "True"


def _govern(picture: NodePicture, node: NodeView, governing: PolicyView) -> Decision:
    try:
        plan = _plan(picture, node, governing)
    except PolicyError as error:
        outcome = stalled(governing, picture.name, Reason.IMPOSSIBLE_ON_NODE, str(error))
        return Decision(Write.NOTHING, outcome=outcome)
    assignment = picture.assignment
    outcome = _outcome(picture, governing, plan)
    if assignment is None:
        return Decision(Write.CREATE, plan.spec, outcome)
    if assignment.leaving:
        return Decision(Write.NOTHING, outcome=outcome)
    if assignment.spec == plan.spec and assignment.owner_uid == node.uid:
        return Decision(Write.NOTHING, outcome=outcome)
    return Decision(Write.REPLACE, plan.spec, outcome)


def _plan(picture: NodePicture, node: NodeView, governing: PolicyView) -> Plan:
    """The next spec; until the hardware is known it names the policy and nothing else.

    Pods that an older state of the policy refused are tried again under the present one.
    """
    reference = PolicyRef(name=governing.name, generation=governing.generation)
    assignment, wanted = picture.assignment, governing.spec
    if wanted.mode == "None":
        return Plan(NodeAssignmentSpec(policy=reference, mode="None"))
    if assignment is None or assignment.topology is None:
        previous = assignment.spec if assignment else NodeAssignmentSpec()
        if previous.pools is not None:
            return Plan(previous)
        return Plan(NodeAssignmentSpec(policy=reference, mode=wanted.mode))
    previous = assignment.spec
    if previous.policy != reference:
        previous = previous.model_copy(update={"refused": ()})
    plan = plan_node(
        assignment.topology,
        with_reserved(wanted, node.capacity_millicpus, node.allocatable_millicpus),
        previous,
        sorted(picture.pods, key=lambda pod: (*pod.order, pod.uid)),
        frozenset(assignment.status.running),
    )
    return replace(plan, spec=plan.spec.model_copy(update={"policy": reference}))


def _outcome(picture: NodePicture, governing: PolicyView, plan: Plan) -> NodeOutcome:
    """How far the policy has come on this node, once `plan` is written."""
    name, assignment = picture.name, picture.assignment
    if governing.spec.mode != "None" and (assignment is None or assignment.topology is None):
        said = "the enforcer has not reported the hardware yet"
        return waiting(governing, name, Reason.WAITING_FOR_TOPOLOGY, said)
    if assignment is None or assignment.spec != plan.spec:
        said = "the enforcer has not seen the newest assignment"
        return waiting(governing, name, Reason.WAITING_FOR_ENFORCER, said)
    outcome = judge_enforcer(governing, assignment)
    if plan.waiting and outcome.reason == Reason.IN_FORCE:
        return waiting(governing, name, Reason.WAITING_FOR_CONTAINERS, _keepers(plan.waiting))
    if plan.queued and outcome.reason == Reason.IN_FORCE:
        said = f"pods that are ending still hold what is meant for {_some(plan.queued)}"
        return waiting(governing, name, Reason.WAITING_FOR_CONTAINERS, said)
    return outcome


def _keepers(keeping: Sequence[Waiting]) -> str:
    """Which containers keep CPUs that the policy reserves by now."""
    named = [f"{one.namespace}/{one.pod}/{one.container} keeps {one.cpus}" for one in keeping]
    return f"reserved CPUs are still in use until the containers end: {_some(named)}"


def _some(named: Sequence[str]) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more
