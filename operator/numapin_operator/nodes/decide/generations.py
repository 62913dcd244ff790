"""Of which generation of a policy an assignment is, and since which of its own.

Does no I/O.
"""

from dataclasses import replace

from numapin_api.schema.plain_assignment import NodeAssignmentSpec, PolicyRef
from numapin_operator.observe.assignments.view import AssignmentView


def with_since(before: AssignmentView | None, planned: NodeAssignmentSpec) -> NodeAssignmentSpec:
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
    reference = replace(planned.policy, since=since) if planned.policy else None
    return replace(planned, policy=reference)


def _same_settings(one: NodeAssignmentSpec, other: NodeAssignmentSpec) -> bool:
    """Whether the policy says the same about the node in both, whatever pods add."""
    same = one.policy is other.policy or same_generation(one.policy, other.policy)
    return same and _settings(one) == _settings(other)


def _settings(spec: NodeAssignmentSpec) -> tuple[object, ...]:
    return (
        spec.mode,
        spec.pools.reserved if spec.pools else None,
        spec.cpu_quota,
        spec.isolation,
        spec.system,
        spec.cache,
        spec.start_gate,
    )


def is_settled(written: NodeAssignmentSpec, planned: NodeAssignmentSpec) -> bool:
    """Whether two specs differ by no more than the generation of their policy.

    An edit that changes nothing for a node must not rewrite its assignment. Refused pods were
    tried again, so that the generation must be written: else they are tried again at each plan.
    """
    if written.policy is None or planned.policy is None:
        return False
    if written.refused and not same_generation(written.policy, planned.policy):
        return False
    same_policy = written.policy.name == planned.policy.name
    return same_policy and written == replace(planned, policy=written.policy)


def same_generation(one: PolicyRef | None, other: PolicyRef | None) -> bool:
    """Whether both name the same state of a policy, and on the same hardware.

    An unset UID may be any, and so may unset hardware.
    """
    if one is None or other is None:
        return False
    same_object = one.uid is None or other.uid is None or one.uid == other.uid
    same_hardware = one.hardware is None or other.hardware in (None, one.hardware)
    same_state = (one.name, one.generation) == (other.name, other.generation)
    return same_object and same_hardware and same_state


def is_written(written: PolicyRef | None, planned: PolicyRef | None) -> bool:
    """Whether an assignment has the settings of the policy that is planned."""
    if written is None or planned is None:
        return written is planned
    return same_generation(written, planned) and written.since == planned.since
