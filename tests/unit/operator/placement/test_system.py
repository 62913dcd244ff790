from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import System
from numapin_operator.placement.assignment.system import system_of


def test_an_assignment_has_what_the_policy_asks() -> None:
    asked = CpuPolicySpec.model_validate({"system": {"processes": "KeepOff"}})
    assert system_of(asked.system) == System(processes="KeepOff")


@pytest.mark.parametrize("spec", [{}, {"system": {}}, {"system": {"processes": "Leave"}}], ids=str)
def test_an_older_enforcer_hears_nothing_of_what_nobody_asks(spec: dict[str, Any]) -> None:
    assert system_of(CpuPolicySpec.model_validate(spec).system) is None
