"""What lines say of containers that have changed."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment, Moving, Pools
from numapin_operator.observe.assignments.printing import printed
from support.values.operator import assignment_view

POOLS = Pools(CpuSet([0]), CpuSet([0, 1]))
MOVING = Moving(CpuSet([2]), at="2026-03-01T09:00:00Z")
BOTH = ContainerAssignment(
    "u-1", "team", "engine-0", "main", CpuSet([2, 3]), MemSet([0]), True, moving=MOVING
)
"""In the second step of a move."""


@pytest.mark.parametrize(
    ("changed", "since"),
    [
        ({}, 2),
        ({"moving": replace(MOVING, at="2026-03-01T09:00:05Z")}, 2),
        ({"outdated": True}, 2),
        ({"cpus": CpuSet([3])}, 5),
        ({"mems": MemSet([1])}, 5),
        ({"exclusive": False}, 5),
        ({"pod_uid": "u-2"}, 5),
    ],
    ids=str,
)
def test_a_line_is_as_old_as_what_its_enforcer_does_for_it(
    changed: dict[str, Any], since: int
) -> None:
    """A report of the kernel stays true of it until then."""
    empty = replace(assignment_view(), generation=1)
    spec = replace(empty.spec, pools=POOLS, containers=(BOTH,))
    before = replace(empty, generation=4, spec=spec)
    _, form = printed(before.spec, empty, as_lines=True)
    assert form.since == (2,)
    later = replace(before.spec, containers=(replace(BOTH, **changed),))
    wire, form = printed(later, replace(before, form=form), as_lines=True)
    assert form.since == (since,)
    assert f" since={since} " in wire["assigned"][0]
