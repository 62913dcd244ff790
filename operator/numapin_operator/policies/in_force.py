"""Which policy is in force on a node, by its NodeAssignment alone. Does no I/O."""

from numapin_api.cache.model import Cache
from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType
from numapin_api.cpupolicy import CpuPolicySpec, Reserved
from numapin_api.meta.selectors import LabelSelector
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, PolicyRef, Pools
from numapin_api.system.model import System
from numapin_api.topology import Topology
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import PolicyView

NO_POD = LabelSelector.model_construct(match_labels={"": ""}, match_expressions=())
"""A selector that no pod matches: a label's key is never empty."""


def followed(assignment: AssignmentView | None) -> PolicyRef | None:
    """The policy that is in force on a node; None if an edit can change nothing there."""
    if assignment is None or assignment.problem is not None or assignment.spec.mode == "None":
        return None
    return assignment.spec.policy if assignment.spec.pools is not None else None


def is_of(reference: PolicyRef, policy: PolicyView) -> bool:
    """Whether a reference names this object; an unset UID may be any."""
    return reference.name == policy.name and reference.uid in (None, policy.uid)


def is_state(reference: PolicyRef, policy: PolicyView) -> bool:
    """Whether a reference names this generation of this object."""
    return is_of(reference, policy) and reference.generation == policy.generation


def has_answered(assignment: AssignmentView) -> bool:
    """Whether the enforcer has observed the settings of the policy that are written."""
    written = assignment.spec.policy
    since = (written.since if written else None) or assignment.generation
    return since <= assignment.status.observed_generation <= assignment.generation


def refuses(assignment: AssignmentView) -> bool:
    """Whether the node's own enforcer reports that it cannot enforce what is written."""
    stalled = find(assignment.status.conditions, ConditionType.STALLED)
    return stalled is not None and stalled.status == "True" and has_answered(assignment)


def as_written(policy: PolicyView, assignment: AssignmentView) -> PolicyView:
    """A policy that changes no setting of a node, for one whose own policy is not known any more.

    What the NodeAssignment does not say, such as how pods are placed, is as `policy` says it. No
    container begins to move, because which ones may is not known.
    """
    spec, reference = assignment.spec, assignment.spec.policy
    if reference is None or spec.pools is None:
        return policy
    settings = {
        "mode": spec.mode,
        "cpu_quota": spec.cpu_quota,
        "isolation": spec.isolation,
        "system": System.model_validate(spec.system.to_wire() if spec.system else {}),
        "cache": Cache.model_validate(spec.cache.to_wire() if spec.cache else {}),
        "start_gate": "Wait" if spec.start_gate else "None",
        "start_timeout": f"{spec.start_gate.timeout_milliseconds}ms" if spec.start_gate else "1s",
        "reserved": _reserved(spec.pools),
        "isolated_cpus": _isolated(policy.spec, spec, assignment.topology),
        "dynamic": policy.spec.dynamic.model_copy(update={"pod_selector": NO_POD}),
    }
    return PolicyView(
        name=reference.name,
        uid=reference.uid or "",
        version=policy.version,
        generation=reference.generation,
        created=policy.created,
        deleting=False,
        spec=policy.spec.model_copy(update=settings),
        status=policy.status,
    )


def _reserved(pools: Pools) -> Reserved:
    strict = bool(pools.reserved) and pools.reserved.isdisjoint(pools.shared)
    return Reserved(cpus=pools.reserved, strict=strict)


def _isolated(policy: CpuPolicySpec, spec: NodeAssignmentSpec, topology: Topology | None) -> str:
    """Whether the shared pool has isolated CPUs; as the policy says it if that is not visible."""
    isolated = topology.isolated - spec.exclusive_cpus if topology else None
    if not isolated or spec.pools is None:
        return policy.isolated_cpus
    return "ExclusiveOnly" if isolated.isdisjoint(spec.pools.shared) else "Ignore"
