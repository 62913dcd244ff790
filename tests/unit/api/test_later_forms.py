"""A NodeAssignment of the form that decision 0007 describes moves nothing under older programs."""

import pytest

from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec
from numapin_operator.observe.assignments.view import AssignmentView

LATER = {
    "mode": "Static",
    "pools": {"reservedCPUs": "0", "sharedCPUs": "0-3"},
    "assigned": ["team/engine-0 engine cpus=2 mems=0 since=1 uid=u-1"],
}


def test_an_enforcer_refuses_it_as_a_whole() -> None:
    with pytest.raises(InvalidSpecError, match=r"spec\.pools\.shared: is missing"):
        decode_spec(LATER)


def test_an_operator_finds_it_invalid_and_so_writes_nothing() -> None:
    metadata = {"name": "node-1", "uid": "u", "resourceVersion": "5", "generation": 2}
    read = AssignmentView.decode({"metadata": metadata, "spec": LATER})
    assert read.problem == "spec.pools.reserved: is missing; add it"
