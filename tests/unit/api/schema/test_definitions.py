import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import ConfigDict, Field

from numapin_api.meta.wire import NOT_NULL, QUANTITY_PATTERN, Quantity, WireModel, never_null
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.schema.__main__ import to_yaml
from numapin_api.schema.definitions import SchemaError, definitions, structural

CRDS = Path(__file__).parents[4] / "charts" / "numapin" / "crd-files"


@pytest.mark.parametrize("name", sorted(definitions()))
def test_the_committed_yaml_is_what_the_models_say(name: str) -> None:
    committed = (CRDS / name).read_text(encoding="utf-8")
    assert committed == to_yaml(definitions()[name]), "run `make schema`"


def test_the_command_prints_every_definition() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "numapin_api.schema", "crds"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert list(yaml.safe_load_all(run.stdout)) == list(definitions().values())


def test_the_kustomization_lists_every_definition() -> None:
    listed = yaml.safe_load((CRDS / "kustomization.yaml").read_text(encoding="utf-8"))
    assert sorted(listed["resources"]) == sorted(definitions())


def _fields(schema: dict[str, Any], place: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, one in schema.get("properties", {}).items():
        found += [(f"{place}.{name}", one), *_fields(one, f"{place}.{name}")]
    for part in ("items", "additionalProperties"):
        if part in schema:
            found += _fields(schema[part], place)
    return found


@pytest.mark.parametrize("name", sorted(definitions()))
def test_every_field_is_described_and_every_list_says_how_it_merges(name: str) -> None:
    version = definitions()[name]["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]["properties"]
    parts = [part for part in ("spec", "status") if part in root]
    fields = [one for part in parts for one in _fields(root[part], part)]
    assert len(fields) > 20
    assert not [place for place, one in fields if not one.get("description", "").endswith(".")]
    lists = [(place, one) for place, one in fields if one.get("type") == "array"]
    assert not [place for place, one in lists if "x-kubernetes-list-type" not in one]


class _Forbids(WireModel):
    model_config = ConfigDict(extra="forbid")
    a: int = Field(description="A.")


class _Union(WireModel):
    a: int | str = Field(description="A.")


class _Recursive(WireModel):
    a: "_Recursive | None" = Field(default=None, description="A.")


class _Undescribed(WireModel):
    a: int


class _Anything(WireModel):
    a: Any = Field(description="A.")


class _Exclusive(WireModel):
    a: int = Field(gt=1, description="A.")


class _Mixed(WireModel):
    a: Literal["x", 1] = Field(description="A.")


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (_Forbids, r'_Forbids: extra="forbid"'),
        (_Union, r"_Union\.a: a union"),
        (_Recursive, r"_Recursive\.a.*recurse"),
        (_Undescribed, r"_Undescribed\.a: has no description"),
        (_Anything, r"_Anything\.a: has no type"),
        (_Exclusive, r"_Exclusive\.a: exclusiveMinimum"),
        (_Mixed, r"_Mixed\.a: has no type"),
    ],
)
def test_what_kubernetes_cannot_express_is_refused(model: type[WireModel], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        structural(model)


class _Inner(WireModel):
    size: Quantity = Field(description="How much.")


class _Good(WireModel):
    """A good model."""

    inner_part: _Inner | None = Field(default=None, description="A part.")
    many: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(), description="Numbers.")


def test_a_model_becomes_a_structural_schema() -> None:
    assert structural(_Good) == {
        "description": "A good model.",
        "type": "object",
        "properties": {
            "innerPart": {
                "description": "A part.",
                "type": "object",
                "nullable": True,
                "required": ["size"],
                "properties": {
                    "size": {
                        "description": "How much.",
                        "maxLength": 64,
                        "minimum": 0,
                        "pattern": QUANTITY_PATTERN,
                        "x-kubernetes-int-or-string": True,
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                    }
                },
            },
            "many": {
                "description": "Numbers.",
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
            },
        },
    }


class _Choice(WireModel):
    """A choice."""

    one: Literal["A", "B"] = Field(default="A", description="Which.")


class _Choosing(WireModel):
    """A model with choices."""

    always: _Choice = Field(default_factory=_Choice, description="Is there by default.")
    may_be: Annotated[_Choice | None, NOT_NULL] = Field(
        default=None, description="Means something if it is unset.", json_schema_extra=never_null
    )


def test_an_object_is_there_by_default_unless_it_may_be_unset() -> None:
    found = structural(_Choosing)["properties"]
    assert found["always"]["default"] == {}
    assert "default" not in found["mayBe"]


def test_an_assignment_is_stored_as_the_operator_writes_it() -> None:
    """What the API server adds to it, the operator would write away again, without end."""
    fields = structural(NodeAssignmentSpec)["properties"]
    assert [name for name, one in fields.items() if one.get("default") == {}] == []
