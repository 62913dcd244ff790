"""The quick check finds a fault exactly where the check that names it does."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.assignment_status import STATUS_SCHEMA
from numapin_api.schema.check import find_faults
from numapin_api.schema.quick_check import quick_check
from support.values.wire_objects import objects

ODD = st.sampled_from(
    (
        *(None, True, 1, -1, 1 << 70, 1.5, "", "x", "3-1", "0-9999", "a\nb", "u\n", "\ud800"),
        *([], {}, [None], {"x": -1}, {str(one): 1 for one in range(9)}, "9" * 5000, ["x"] * 2049),
    )
)

SPEC = pytest.param(SPEC_SCHEMA, objects(NodeAssignmentSpec), id="spec")
STATUS = pytest.param(
    STATUS_SCHEMA, objects(NodeAssignmentStatus, without=("topology",)), id="status"
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each part of a document."""
    if not isinstance(value, dict | list):
        return [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, one in steps for found in paths(one, (*path, key)))]


def with_part(document: Any, path: tuple[Any, ...], part: Any) -> Any:
    """The document with another value at a path; the value itself for an empty path."""
    if not path:
        return part
    made = copy.deepcopy(document)
    holder = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = part
    return made


@pytest.mark.parametrize(("schema", "documents"), [SPEC, STATUS])
def test_both_find_the_same(
    schema: Mapping[str, Any], documents: st.SearchStrategy[dict[str, Any]]
) -> None:
    check = quick_check(schema)

    @given(documents, ODD, st.data())
    def compare(document: dict[str, Any], odd: Any, data: st.DataObject) -> None:
        assert check(document)
        assert not list(find_faults(document, schema, "x"))
        changed = with_part(document, data.draw(st.sampled_from(paths(document))), odd)
        assert check(changed) == (not list(find_faults(changed, schema, "x")))

    compare()


@pytest.mark.parametrize(
    "missing", [{"namespace": "n", "pod": "p", "container": "c"}, {"podUID": "u", "pod": "p"}]
)
def test_a_missing_field_is_a_fault(missing: dict[str, Any]) -> None:
    assert not quick_check(SPEC_SCHEMA)({"containers": [missing]})
