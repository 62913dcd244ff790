"""The health checks for Argo CD, in an interpreter of its version of Lua (5.1)."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from support.values.operator import condition

MANIFEST = Path(__file__).parents[2] / "manifests" / "argocd" / "argocd-cm.yaml"
CHECKS: dict[str, str] = yaml.safe_load(MANIFEST.read_text())["data"]

# What Argo CD does not open. Source: argo-cd, util/lua/lua.go, `runLua`.
SANDBOX = """
debug.setmetatable("", nil)
for _, name in ipairs({"string", "math", "io", "os", "debug", "coroutine", "package", "python"}) do
  _G[name] = nil
end
"""

READY = condition("Ready", reason="InForce", message="in force on 3 nodes")
NOT_READY = condition("Ready", holds=False, reason="NodesStalled")
SETTLED = condition("Reconciling", holds=False, reason="Settled")
UNDER_WAY = condition("Reconciling", reason="WaitingForContainers", message="until they end")
FINE = condition("Stalled", holds=False, reason="NotStalled")
STALLED = condition("Stalled", reason="NodesStalled", message="node-1: CPUsWithheld")


def health(check: str, status: Any, **metadata: Any) -> tuple[str, str]:
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute(SANDBOX)
    body = {"metadata": {"name": "a", "generation": 2} | metadata}
    if status is not None:
        body["status"] = status
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    answer = lua.execute(check)
    return answer["status"], answer["message"]


@pytest.fixture(params=sorted(CHECKS))
def check(request: pytest.FixtureRequest) -> str:
    return CHECKS[request.param]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([READY, SETTLED, FINE], ("Healthy", "InForce: in force on 3 nodes")),
        (
            [NOT_READY, UNDER_WAY, FINE],
            ("Progressing", "WaitingForContainers: until they end"),
        ),
        ([NOT_READY, SETTLED, STALLED], ("Degraded", "NodesStalled: node-1: CPUsWithheld")),
        ([NOT_READY, UNDER_WAY, STALLED], ("Degraded", "NodesStalled: node-1: CPUsWithheld")),
        ([NOT_READY, SETTLED, FINE], ("Progressing", "the condition Ready is not true yet")),
        ([{"type": "Ready", "status": "True"}], ("Healthy", ": ")),
        ([], ("Progressing", "the condition Ready is not true yet")),
    ],
    ids=["ready", "under way", "stalled", "stalled elsewhere", "neither", "bare", "none"],
)
def test_conditions_become_health(
    check: str, conditions: list[Any], expected: tuple[str, str]
) -> None:
    assert health(check, {"observedGeneration": 2, "conditions": conditions}) == expected


@pytest.mark.parametrize("status", [None, {}, {"observedGeneration": 1, "conditions": [READY]}])
def test_an_older_report_says_nothing_of_the_newest_spec(check: str, status: Any) -> None:
    said = "numapin has not reported on the newest spec yet"
    assert health(check, status) == ("Progressing", said)


def test_what_is_being_deleted_is_not_healthy(check: str) -> None:
    status = {"observedGeneration": 2, "conditions": [READY]}
    deleted = health(check, status, deletionTimestamp="2026-01-01T00:00:00Z")
    assert deleted == ("Progressing", "is being deleted")


def test_both_kinds_have_a_check() -> None:
    prefix = "resource.customizations.health.numapin.io_"
    assert sorted(CHECKS) == [f"{prefix}CpuPolicy", f"{prefix}NodeAssignment"]
