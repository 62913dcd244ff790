"""A NodeAssignment of the form that decision 0007 describes moves nothing under older programs.

Both programs of 0.1 check a spec by this schema, and use none that has a fault.
"""

import pytest

from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.check import find_faults
from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec

LATER = {
    "mode": "Static",
    "pools": {"reservedCPUs": "0", "sharedCPUs": "0-3"},
    "assigned": ["team/engine-0 engine cpus=2 mems=0 since=1 uid=u-1"],
}


def test_an_enforcer_refuses_it_as_a_whole() -> None:
    with pytest.raises(InvalidSpecError, match=r"spec\.pools\.shared: is missing"):
        decode_spec(LATER)


def test_an_operator_finds_it_invalid_and_so_writes_nothing() -> None:
    faults = list(find_faults(LATER, SPEC_SCHEMA, "spec"))
    assert faults[0] == "spec.pools.reserved: is missing; add it"
