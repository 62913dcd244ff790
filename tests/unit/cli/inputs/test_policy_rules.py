"""What the API server refuses in a policy, the what-if commands refuse too."""

from typing import Any

import pytest
from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_cli.inputs.policy_rules import refused_fields
from support.values.policy_specs import BAD_POLICIES, GOOD_POLICIES


def is_refused(spec: dict[str, Any]) -> bool:
    try:
        return any(refused_fields(CpuPolicySpec.model_validate(spec, extra="forbid")))
    except ValidationError:
        return True


@pytest.mark.parametrize("case", GOOD_POLICIES)
def test_what_the_api_server_accepts_is_accepted(case: str) -> None:
    assert not is_refused(GOOD_POLICIES[case])


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_what_the_api_server_refuses_is_refused(case: str) -> None:
    assert is_refused(BAD_POLICIES[case][0])
