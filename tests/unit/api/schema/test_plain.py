"""The plain values have every field of the models, and mean the same."""

import json
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from pydantic import Field, create_model

from numapin_api.cpuset import CpuSet
from numapin_api.meta.wire import WireModel, atomic_list
from numapin_api.nodeassignment import (
    ContainerAssignment,
    NodeAssignmentSpec,
    NodeAssignmentStatus,
)
from numapin_api.schema import plain, plain_assignment
from numapin_api.schema.__main__ import spec_module
from numapin_api.schema.check import find_faults, find_unknown
from numapin_api.schema.definitions import SchemaError, structural
from numapin_api.schema.plain_module import NODE, OPERATOR, Form, plain_module
from support.values.wire_objects import objects

NUMBERS = count()


def loaded(text: str) -> ModuleType:
    """A module of this text; dataclasses look theirs up by its name."""
    module = ModuleType(f"plain_{next(NUMBERS)}")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__name__, "exec"), module.__dict__)
    return module


NODE_READING = loaded(
    plain_module(NodeAssignmentStatus, NodeAssignmentStatus, replace(NODE, reads_status=True))
)
"""The classes of a node's status with what reads them, which no program needs."""

FORMS = [
    pytest.param(NODE, plain, NODE_READING, id="node"),
    pytest.param(OPERATOR, plain_assignment, plain_assignment, id="operator"),
]


@pytest.mark.parametrize(("form", "module", "reading"), FORMS)
def test_the_committed_classes_are_those_of_the_models(
    form: Form,
    module: ModuleType,
    reading: ModuleType,
) -> None:
    made = plain_module(NodeAssignmentSpec, NodeAssignmentStatus, form)
    assert Path(module.__file__ or "").read_text(encoding="utf-8") == made, "run `make schema`"


@pytest.mark.parametrize(("form", "module", "reading"), FORMS)
def test_a_spec_is_read_and_written_as_the_models_do(
    form: Form,
    module: Any,
    reading: ModuleType,
) -> None:
    @given(objects(NodeAssignmentSpec))
    def check(wire: dict[str, Any]) -> None:
        model = NodeAssignmentSpec.model_validate(wire)
        read = module.NodeAssignmentSpec.from_wire(wire)
        assert without_null(read.to_wire()) == without_omitted(model, form)
        assert module.NodeAssignmentSpec.from_wire(read.to_wire()) == read
        assert read.exclusive_cpus == model.exclusive_cpus

    check()


@given(objects(NodeAssignmentSpec))
def test_the_operator_writes_the_bytes_of_the_models(wire: dict[str, Any]) -> None:
    model = NodeAssignmentSpec.model_validate(wire)
    read = plain_assignment.NodeAssignmentSpec.from_wire(wire)
    assert json.dumps(read.to_wire()) == json.dumps(model.to_wire())


@pytest.mark.parametrize(("form", "module", "reading"), FORMS)
def test_a_status_is_written_as_the_models_do(
    form: Form,
    module: ModuleType,
    reading: Any,
) -> None:
    @given(objects(NodeAssignmentStatus, without=("topology",)))
    def check(wire: dict[str, Any]) -> None:
        model = NodeAssignmentStatus.model_validate(wire)
        read = reading.NodeAssignmentStatus.from_wire(wire)
        assert without_null(read.to_wire()) == without_omitted(model, form)

    check()


def without_null(value: Any) -> Any:
    """A value as JSON; the parts that are passed on may have unset fields."""
    if isinstance(value, dict):
        return {name: without_null(one) for name, one in value.items() if one is not None}
    return [without_null(one) for one in value] if isinstance(value, list) else value


def without_omitted(model: WireModel, form: Form) -> dict[str, Any]:
    """A model as JSON, without the fields that plain values do not have."""
    kind, as_set = type(model), type(model).__name__ in form.as_json  # passed on as it is
    wire = model.model_dump(mode="json", by_alias=True, exclude_unset=as_set)
    for name, field in kind.model_fields.items():
        value, key = getattr(model, name), str(field.alias)
        if name in form.omitted.get(kind.__name__, ()):
            wire.pop(key, None)
        elif isinstance(value, WireModel) and not as_set:
            wire[key] = without_omitted(value, form)
        elif key in wire and isinstance(value, tuple) and value and isinstance(value[0], WireModel):
            wire[key] = [without_omitted(one, form) for one in value]
    return {name: one for name, one in wire.items() if one is not None}


Container = create_model(
    "ContainerAssignment",
    __base__=ContainerAssignment,
    late_sets=(
        tuple[CpuSet, ...] | None,
        Field(default=None, description="New.", max_length=2, json_schema_extra=atomic_list()),
    ),
)
Spec = create_model(
    "NodeAssignmentSpec",
    __base__=NodeAssignmentSpec,
    containers=(
        tuple[Container, ...],
        Field(default=(), description="Those.", json_schema_extra=atomic_list()),
    ),
)
OWNER = {"podUID": "u", "namespace": "n", "pod": "p", "container": "c"}


def test_a_new_field_of_a_model_is_everywhere() -> None:
    """One line in the model, and `make schema`."""
    made, rules = (
        loaded(plain_module(Spec, NodeAssignmentStatus)),
        loaded(spec_module(Spec)).SPEC_SCHEMA,
    )
    wire = {"containers": [{**OWNER, "lateSets": ["0-3", "8"]}]}
    [container] = made.NodeAssignmentSpec.from_wire(wire).containers
    assert container.late_sets == (CpuSet(range(4)), CpuSet((8,)))
    assert container.to_wire()["lateSets"] == ["0-3", "8"]
    assert Spec.model_validate(wire).to_wire()["containers"][0]["lateSets"] == ["0-3", "8"]
    [] = find_faults(wire, rules, "spec")
    [] = find_unknown(wire, rules, "spec")
    [fault] = find_faults({"containers": [{**OWNER, "lateSets": ["3-1"]}]}, rules, "spec")
    assert fault.startswith("spec.containers[0].lateSets[0]: '3-1' is not a list of ids")
    in_crd = structural(Spec)["properties"]["containers"]["items"]["properties"]["lateSets"]
    assert (in_crd["maxItems"], in_crd["nullable"]) == (2, True)


def test_a_field_of_a_type_that_is_not_known_is_named() -> None:
    odd = create_model(
        "NodeAssignmentSpec", __base__=NodeAssignmentSpec, odd=(float, Field(description="Odd."))
    )
    with pytest.raises(
        SchemaError, match=r"NodeAssignmentSpec.odd: .*float.* no plain counterpart"
    ):
        plain_module(odd, NodeAssignmentStatus)
