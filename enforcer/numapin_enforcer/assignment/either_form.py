"""The spec of a NodeAssignment of either form: its values, and what else it says. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.forms.report import Generation
from numapin_api.forms.spec import ReadSpec, read_spec
from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.check import find_faults
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec, unknown_fields
from numapin_enforcer.assignment.field_names import fault_of_line, unknown_of_lines

Key = tuple[str, str]

NO_GENERATION: Final = Generation()


@dataclass(frozen=True, slots=True)
class DecodedSpec:
    """The spec of a NodeAssignment.

    Attributes:
        spec: its values, without what the status says of refused pods.
        has_lines: whether it has the form of v1beta1.
        since: the generation that first had the CPUs and NUMA nodes of each container.
        unknown: fields that this enforcer does not have, which a later operator writes.
        waited_for: what the operator waits for besides containers that start; None if it waits for
            a container to leave CPUs.
    """

    spec: NodeAssignmentSpec
    has_lines: bool
    since: Mapping[Key, int]
    unknown: tuple[str, ...]
    waited_for: object

    def first_seen_by(self, generation: int) -> dict[Key, ContainerAssignment]:
        """The containers that a generation up to this one had as they are."""
        return {one.key: one for one in self.spec.containers if self.since[one.key] <= generation}


@dataclass(frozen=True, slots=True)
class Judged:
    """What was made of the newest spec.

    Attributes:
        observed: its generation.
        enforced: the generation of the spec that is in force.
        assigned: the containers of the newest spec that have been accepted as they are.
        refused: UIDs of the pods that the newest spec lists, if it was refused.
        waited_for: see `DecodedSpec`.
        has_lines: whether it has the form of v1beta1.
    """

    observed: Generation = NO_GENERATION
    enforced: Generation = NO_GENERATION
    assigned: Mapping[Key, ContainerAssignment] = field(default_factory=dict)
    waited_for: object = None
    has_lines: bool = False
    refused: frozenset[str] = frozenset()


def decode_assignment(body: Mapping[str, Any]) -> DecodedSpec:
    """Decode the spec of an object as the API server has it, which may be any JSON value.

    Raises:
        InvalidSpecError: it breaks the schema, or a line is wrong.
    """
    raw = body.get("spec") or {}
    read = read_spec({"metadata": body["metadata"], "spec": raw})
    if error := InvalidSpecError.of(read.faults):
        raise error
    lines = read.has_lines
    try:
        spec = decode_spec(read.wire)
    except InvalidSpecError as error:
        raise (
            InvalidSpecError(tuple(map(fault_of_line, error.faults))) if lines else error
        ) from None
    unknown = unknown_fields(read.wire)
    return DecodedSpec(
        spec=spec,
        has_lines=lines,
        since=dict(zip((one.key for one in spec.containers), read.since, strict=True)),
        unknown=tuple(map(unknown_of_lines, unknown)) if lines else unknown,
        waited_for=_waited_for(read),
    )


def refusals_told(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the status of an object says of refused pods, as a spec of v1alpha1 says it.

    Empty if a field of it is wrong: a status cannot make a spec invalid.
    """
    told = read_spec({**body, "spec": {}}).wire
    return {} if any(find_faults(told, SPEC_SCHEMA, "spec")) else told


def with_refusals(spec: NodeAssignmentSpec, told: Mapping[str, Any]) -> NodeAssignmentSpec:
    """A spec with these refusals instead of its own; see `refusals_told`."""
    refused, omitted = tuple(told.get("refused") or ()), told.get("refusedOmitted")
    unassigned = tuple(told.get("unassigned") or ())
    return replace(spec, refused=refused, refused_omitted=omitted, unassigned=unassigned)


def _waited_for(read: ReadSpec) -> object:
    """See `DecodedSpec.waited_for`. The wire has no faults."""
    if any(one.get("moving") for one in read.wire.get("containers") or ()):
        return None
    policy = read.wire.get("policy") or {}
    return (read.wire.get("mode"), policy.get("name"), policy.get("since"))
