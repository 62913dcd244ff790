"""The spec of a NodeAssignment as plain values, checked by the schema of the models.

Does no I/O.
"""

from itertools import islice
from typing import Final

from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.check import find_faults, find_unknown
from numapin_api.schema.plain import NodeAssignmentSpec

MOST_FAULTS: Final = 20
"""How many wrong fields of a spec are named."""


class InvalidSpecError(ValueError):
    """A spec breaks the schema; `faults` name the first wrong fields, at least one."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def decode_spec(wire: object) -> NodeAssignmentSpec:
    """Decode a spec as the API server has it, which may be any JSON value.

    Raises:
        InvalidSpecError: it breaks the schema.
    """
    found = find_faults(wire, SPEC_SCHEMA, "spec")
    if faults := tuple(islice(found, MOST_FAULTS)):
        more = () if next(found, None) is None else ("spec: there are more faults",)
        raise InvalidSpecError(faults + more)
    assert isinstance(wire, dict)
    return NodeAssignmentSpec.from_wire(wire)


def unknown_fields(wire: object) -> tuple[str, ...]:
    """Fields of a valid spec that this enforcer does not have, which a later operator writes."""
    return tuple(dict.fromkeys(find_unknown(wire, SPEC_SCHEMA, "spec")))
