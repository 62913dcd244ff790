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


PREFIX = "resource.customizations.health.numapin.io_"


def health(kind: str, status: Any, spec: Any = None, **metadata: Any) -> tuple[str, str]:
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute(SANDBOX)
    body = {"kind": kind, "metadata": {"name": "a", "generation": 2} | metadata}
    if status is not None:
        body["status"] = status
    if spec is not None:
        body["spec"] = spec
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    answer = lua.execute(CHECKS[f"{PREFIX}{kind}"])
    return answer["status"], answer["message"]


KINDS = tuple(key.removeprefix(PREFIX) for key in sorted(CHECKS))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
    kind: str, conditions: list[Any], expected: tuple[str, str]
) -> None:
    observed = {} if kind == "NodeReport" else {"observedGeneration": 2}
    assert health(kind, observed | {"conditions": conditions}) == expected


@pytest.mark.parametrize("kind", ["CpuPolicy", "NodeAssignment"])
@pytest.mark.parametrize("status", [None, {}, {"observedGeneration": 1, "conditions": [READY]}])
def test_an_older_report_says_nothing_of_the_newest_spec(kind: str, status: Any) -> None:
    said = "numapin has not reported on the newest spec yet"
    assert health(kind, status) == ("Progressing", said)


def test_a_report_that_nobody_has_written_yet_is_not_healthy() -> None:
    said = "the condition Ready is not true yet"
    assert health("NodeReport", None) == ("Progressing", said)


def test_an_assignment_with_a_report_of_its_own_has_no_conditions() -> None:
    said = "the NodeReport of this name says what is in force"
    lines = {"pools": {"sharedCPUs": "0-3"}, "assigned": []}
    assert health("NodeAssignment", None, lines) == ("Healthy", said)
    assert health("NodeAssignment", {"refused": 1}, lines) == ("Healthy", said)
    for waits in ({}, {"mode": "Static"}, {"pools": {"shared": "0-3"}}):
        assert health("NodeAssignment", None, waits)[0] == "Progressing"


def test_what_is_being_deleted_is_not_healthy(kind: str) -> None:
    status = {"observedGeneration": 2, "conditions": [READY]}
    deleted = health(kind, status, deletionTimestamp="2026-01-01T00:00:00Z")
    assert deleted == ("Progressing", "is being deleted")


def test_every_kind_with_conditions_has_a_check() -> None:
    assert KINDS == ("CpuPolicy", "NodeAssignment", "NodeReport")
