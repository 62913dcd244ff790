"""What users read of a document that pydantic refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.invalid import invalid_fields
from numapin_api.nodeassignment import NodeAssignmentSpec


def refusal(model: type[CpuPolicySpec | NodeAssignmentSpec], document: Any) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(document, extra="forbid")
    return refused.value


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"options": {"fullCores": True}},
            "spec.options.fullCores: there is no such field; remove it or correct its name",
        ),
        ({"memory": {"reserved": [{}]}}, "spec.memory.reserved[0].numaNode: is missing; add it"),
        (
            {"priority": "high"},
            "spec.priority: input should be a valid integer, unable to parse string as an integer,"
            " not 'high'",
        ),
        (
            {"reserved": {"cpus": "3-1"}},
            "spec.reserved.cpus: '3-1' is not a list of ids: the range 3-1 runs backwards;"
            " write it like 0-3,8, not '3-1'",
        ),
    ],
)
def test_a_wrong_field_is_named_with_the_remedy(document: Any, text: str) -> None:
    assert str(invalid_fields(refusal(CpuPolicySpec, document), within="spec")[0]) == text


def test_every_wrong_field_is_listed() -> None:
    error = refusal(NodeAssignmentSpec, {"mode": "Sideways", "containers": [{}]})
    fields = [field for field, _ in invalid_fields(error)]
    assert fields[:2] == ["mode", "containers[0].podUID"]


def test_a_wrong_document_as_a_whole_has_no_field() -> None:
    assert str(invalid_fields(refusal(CpuPolicySpec, 7))[0]).startswith("input should be")


def test_a_text_that_is_not_json_says_where() -> None:
    with pytest.raises(ValidationError) as refused:
        CpuPolicySpec.model_validate_json("{")
    assert str(invalid_fields(refused.value)[0]).startswith("is not JSON (EOF while parsing")
