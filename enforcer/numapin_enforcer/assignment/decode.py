"""The spec of a NodeAssignment as plain values, checked by the schema of the models.

Does no I/O.
"""

from collections.abc import Iterable
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

    @classmethod
    def of(cls, found: Iterable[str]) -> "InvalidSpecError | None":
        """The error with the first of these faults; None without any."""
        faults = iter(found)
        named = tuple(islice(faults, MOST_FAULTS))
        more = () if next(faults, None) is None else ("spec: there are more faults",)
        return cls(named + more) if named else None


def decode_spec(wire: object) -> NodeAssignmentSpec:
    """Decode a spec as v1alpha1 has it, which may be any JSON value.

    Raises:
        InvalidSpecError: it breaks the schema.
    """
    if error := InvalidSpecError.of(find_faults(wire, SPEC_SCHEMA, "spec")):
        raise error
    assert isinstance(wire, dict)
    return NodeAssignmentSpec.from_wire(wire)


def unknown_fields(wire: object) -> tuple[str, ...]:
    """Fields of a valid spec that this enforcer does not have, which a later operator writes."""
    return tuple(dict.fromkeys(find_unknown(wire, SPEC_SCHEMA, "spec")))
