"""The schema and the models take the same specs, and name the same fields of others."""

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from numapin_api import invalid
from numapin_api.invalid import invalid_fields
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.schema.assignment_spec import SPEC_SCHEMA
from numapin_api.schema.check import find_faults
from numapin_enforcer.assignment.decode import (
    MOST_FAULTS,
    InvalidSpecError,
    decode_spec,
    unknown_fields,
)
from support.values.wire_objects import objects

SPECS = objects(NodeAssignmentSpec)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**6, 10**30, 0.5, [], {}, [None], [-1], [[]], ["u"], "", "x", "3-1"),
    *(
        "0\n",
        "a\n",
        "0-1",
        "8192",
        "9999",
        "1 ",
        "\u0663",
        "\u00fc",
        "x" * 5000,
        "0," * 2100,
    ),
    *([0] * 129, [{}] * 65, [{}] * 2049, {"name": "n"}, {"shared": "0"}, {"reserved": "0"}),
)
ODD_VALUES = st.sampled_from(ODD).map(deepcopy)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A spec in which a few values, anywhere, were replaced or left out."""
    spec: Any = draw(SPECS)
    for _ in range(draw(st.integers(1, 3))):
        at: Any = spec
        while inner := [one for one in _values(at) if one]:
            if not draw(st.booleans()):
                break
            at = draw(st.sampled_from(inner))
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return draw(ODD_VALUES)
        key = draw(st.sampled_from(keys))
        if isinstance(at, dict) and draw(st.booleans()):
            del at[key]
        else:
            at[key] = draw(ODD_VALUES)
    return spec


def _values(at: Any) -> list[Any]:
    values = at.values() if isinstance(at, dict) else at
    return [one for one in values if isinstance(one, dict | list)]


def wrong_by_the_models(spec: Any) -> set[str]:
    """The wrong fields; strict, as the API server is: it takes no text for a number."""
    try:
        NodeAssignmentSpec.model_validate_json(json.dumps(spec), strict=True)
    except ValidationError as error:
        return {one.field for one in invalid_fields(error, within="spec")}
    return set()


def wrong(spec: Any) -> set[str]:
    return {one.split(": ", 1)[0] for one in find_faults(spec, SPEC_SCHEMA, "spec")}


@given(SPECS | damaged())
def test_the_same_fields_are_wrong(spec: Any) -> None:
    assert _innermost(wrong(spec)) == _innermost(wrong_by_the_models(spec))


def _innermost(found: set[str]) -> set[str]:
    """Without lists of wrong entries: pydantic counts the entries that are right."""
    lists = {one[:at] for one in found for at, letter in enumerate(one) if letter == "["}
    return found - lists


def test_fields_of_a_later_release_are_dropped() -> None:
    pools = {"reserved": "0", "shared": "0-1"}
    later = {"pools": pools | {"idle": "1"}, "containers": [], "future": {"a": 1}}
    assert decode_spec(later) == decode_spec({"pools": pools, "containers": []})
    assert unknown_fields(later) == ("spec.pools.idle", "spec.future")


@given(SPECS, st.booleans())
def test_the_same_fields_are_unknown(spec: dict[str, Any], later: bool) -> None:
    if later:
        spec = spec | {"ofALaterVersion": 1}
    by_the_models = invalid.unknown_fields(NodeAssignmentSpec, spec, "spec")
    assert set(unknown_fields(spec)) == {re.sub(r"\[\d+\]", "[]", one) for one in by_the_models}


def test_an_unknown_field_of_many_entries_is_named_once() -> None:
    entry = {"podUID": "u", "namespace": "n", "pod": "p", "container": "c", "weight": 2}
    assert unknown_fields({"containers": [entry, entry]}) == ("spec.containers[].weight",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "spec: should be an object, not []"),
        ({"pools": {"shared": "0"}}, "spec.pools.reserved: is missing; add it"),
        (
            {"containers": [{"podUID": "u", "namespace": "n", "pod": "p", "container": "c"}, 3]},
            "spec.containers[1]: should be an object, not 3",
        ),
        ({"mode": "Off"}, "spec.mode: should be one of Static, None, Dynamic, Audit, not 'Off'"),
        (
            {"pools": {"reserved": "3-1", "shared": "0"}},
            "spec.pools.reserved: '3-1' is not a list of ids: the range 3-1 runs backwards; "
            "write it like 0-3,8, not '3-1'",
        ),
        ({"policy": {"name": "n", "generation": True}}, "generation: should be a whole number"),
        ({"policy": {"name": "n", "generation": -1}}, "generation: should be at least 0, not -1"),
        ({"policy": {"name": "", "generation": 1}}, "should have at least 1 characters, not ''"),
        ({"policy": {"name": "\ud800", "generation": 1}}, "name: should be Unicode text"),
        ({"containers": [{}] * 2049}, "spec.containers: should have at most 2048 entries"),
    ],
)
def test_a_fault_says_where_and_what(spec: Any, message: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        decode_spec(spec)
    assert message in str(caught.value)


def test_a_spec_of_nothing_but_faults_names_few() -> None:
    with pytest.raises(InvalidSpecError) as refused:
        decode_spec({"containers": [{}] * 2048})
    assert len(refused.value.faults) == MOST_FAULTS + 1
    assert refused.value.faults[-1] == "spec: there are more faults"
