"""Spec and status of a NodeAssignment, checked before they are used. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.assignment_status import STATUS_SCHEMA
from numapin_api.schema.check import find_faults
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.schema.quick_check import Check, quick_check

_SPEC: Final = quick_check(SPEC_SCHEMA)
_STATUS: Final = quick_check(STATUS_SCHEMA)


class InvalidPartError(Exception):
    """A part of an object is invalid; the text names the field."""


def decode_spec(raw: object) -> NodeAssignmentSpec:
    """Decode a spec.

    Raises:
        InvalidPartError: naming the first field that is wrong.
    """
    return NodeAssignmentSpec.from_wire(_checked(raw, _SPEC, SPEC_SCHEMA, "spec"))


def decode_status(raw: object) -> NodeAssignmentStatus:
    """Decode what decisions use of a status.

    Raises:
        InvalidPartError: naming the first field that is wrong.
    """
    return NodeAssignmentStatus.from_wire(_checked(raw, _STATUS, STATUS_SCHEMA, "status"))


def _checked(raw: object, check: Check, schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    if not check(raw):
        raise InvalidPartError(next(find_faults(raw, schema, path)))
    assert isinstance(raw, dict)
    return raw
