"""The rules that are committed are those of the models."""

from pathlib import Path
from typing import Any

import pytest

from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.schema import __main__ as schema
from numapin_api.schema import check
from numapin_api.schema.definitions import SchemaError

ROOT = Path(__file__).parents[4]


def test_the_committed_rules_are_those_of_the_models() -> None:
    committed = (ROOT / "crds/numapin_api/schema/assignment_spec.py").read_text(encoding="utf-8")
    assert committed == schema.spec_module(NodeAssignmentSpec), "run `make schema`"


def test_the_committed_rules_of_a_status_are_those_of_the_models() -> None:
    committed = (ROOT / "crds/numapin_api/schema/assignment_status.py").read_text(encoding="utf-8")
    assert committed == schema.status_module(NodeAssignmentStatus), "run `make schema`"


@pytest.mark.parametrize(
    "odd",
    [
        {"uniqueItems": True},
        {"anyOf": []},
        {"type": "object", "additionalProperties": {"multipleOf": 2}},
    ],
)
def test_a_rule_that_is_not_checked_is_not_written(
    odd: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"type": "object", "properties": {"list": {"type": "array", "items": odd}}}
    monkeypatch.setattr(schema, "structural", lambda model: made)
    with pytest.raises(SchemaError, match=r"spec.list\[\].*: .* is not checked by schema/check.py"):
        schema.spec_module(NodeAssignmentSpec)


def test_a_pattern_is_not_met_by_a_line_end() -> None:
    rule = {"type": "string", "pattern": "^a$"}
    assert not list(check.find_faults("a", rule, "x"))
    assert list(check.find_faults("a\n", rule, "x"))
