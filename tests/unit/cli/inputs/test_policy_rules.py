"""What the API server refuses in a policy, the what-if commands refuse too."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.cel_rules import VALIDATIONS
from numapin_api.schema.definitions import structural
from numapin_cli.inputs.policy_rules import refused_fields
from support.values.policy_specs import BAD_POLICIES, GOOD_POLICIES


def is_refused(spec: dict[str, Any]) -> bool:
    try:
        parsed = CpuPolicySpec.model_validate(spec, extra="forbid")
        return any(refused_fields(parsed))
    except ValidationError:
        return True


@pytest.mark.parametrize("case", GOOD_POLICIES)
def test_what_the_api_server_accepts_is_accepted(case: str) -> None:
    assert not is_refused(GOOD_POLICIES[case])


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_what_the_api_server_refuses_is_refused(case: str) -> None:
    assert is_refused(BAD_POLICIES[case][0])


Path = tuple[str, ...]


def rules(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where a schema has CEL rules, with the message of each."""
    for one in schema.get(VALIDATIONS, ()):
        yield path, one["message"]
    for name, below in schema.get("properties", {}).items():
        yield from rules(below, (*path, name))
    if "items" in schema:
        yield from rules(schema["items"], (*path, "[]"))


def has(value: Any, path: Path) -> bool:
    if not path or value is None:
        return value is not None
    if path[0] == "[]":
        return any(has(one, path[1:]) for one in value)
    return has(value.get(path[0]), path[1:])


def test_each_rule_of_the_crd_has_a_spec_that_breaks_it() -> None:
    each = list(rules(structural(CpuPolicySpec)))
    tried = [
        (path, message)
        for path, message in each
        if any(has(spec, path) and said in message for spec, said in BAD_POLICIES.values())
    ]
    assert len(each) > 20
    assert each == tried
