"""The table of edits in docs/operator.md: each row's cells, on a node with a running container."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numapin_api.topology import Topology
from numapin_operator.nodes.decide import NodePicture, decide
from numapin_operator.nodes.decide.decision import Moment, NodeMemory, Release
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.selection import mark_selected
from support.values.operator import (
    assignment_view,
    enforcer_status,
    node_view,
    pod_view,
    policy_view,
)
from support.values.placement import machine

DOCS = Path(__file__).parents[5] / "docs" / "operator.md"
MACHINE: Topology = machine(16, numa_nodes=2)
SPEC: dict[str, Any] = {"reserved": {"count": 1}}
RUNNING, NEW = pod_view("a", "9", bound="1"), pod_view("b", bound="2")
HELD = "1,8-15"

WAITS = "WaitingForContainers"

ROWS: list[Any] = [
    ("`mode` to `None`", {"mode": "None"}, "", "ReleaseDelayed"),
    ("`mode` to `Audit`", {"mode": "Audit"}, "2-3", "Audited"),
    ("`mode` to `Dynamic`", {"mode": "Dynamic"}, "2-3", "InForce"),
    ("`isolation`", {"isolation": "Partition"}, "2-3", "InForce"),
    ("`reserved.cpus`", {"reserved": {"cpus": "0,8"}}, "2-3", WAITS),
    ("`reserved.cpus`", {"reserved": {"count": 2}}, "2-3", WAITS),
    ("`reserved.strict`", {"reserved": {"count": 1, "strict": True}}, "2-3", "InForce"),
    (
        "`options.fullPCPUsOnly`",
        {"options": {"fullPCPUsOnly": True}},
        "2-3",
        WAITS,
    ),
    ("other `options`", {"options": {"distributeCPUsAcrossNUMA": True}}, "2-3", "InForce"),
    ("other `options`", {"options": {"alignBySocket": True}}, "2-3", "InForce"),
    ("other `options`", {"options": {"distributeCPUsAcrossCores": True}}, "2-3", "InForce"),
    ("other `options`", {"options": {"preferAlignCPUsByUncoreCache": True}}, "2-3", "InForce"),
    (
        "`topology.policy` to `Restricted`",
        {"topology": {"policy": "SingleNUMANode"}},
        "2-3",
        WAITS,
    ),
    ("`topology.policy` to `None`", {"topology": {"policy": "BestEffort"}}, "2-3", "InForce"),
    ("`topology.policy` to `None`", {"topology": {"scope": "Pod"}}, "2-3", "InForce"),
    ("`memory.policy`", {"memory": {"policy": "Static"}}, "2-3", WAITS),
    ("`memory.policy`", {"memory": {"policy": "Preferred"}}, "2-3", WAITS),
    ("`pods`", {"pods": {"qosClasses": ["Burstable"]}}, "", WAITS),
    ("`pods`", {"pods": {"podSelector": {"matchLabels": {"x": "y"}}}}, "", WAITS),
    ("`pods`", {"pods": {"confinedNamespaces": ["default"]}}, "", WAITS),
    ("`placement`", {"placement": {"numaNodes": "Spread"}}, "2-3", "InForce"),
    ("`cpuQuota`", {"cpuQuota": "Keep"}, "2-3", "InForce"),
    ("`system`", {"system": {"processes": "KeepOff"}}, "2-3", "InForce"),
    ("`cache`", {"cache": {"classes": {"exclusive": {"l3Percent": 40}}}}, "2-3", "InForce"),
    ("`onUnsatisfiable`", {"onUnsatisfiable": "Evict"}, "2-3", "InForce"),
    ("`startGate`", {"startGate": "Wait"}, "2-3", "InForce"),
    ("`startGate`", {"startTimeout": "500ms"}, "2-3", "InForce"),
    ("`onUnsatisfiable`", {"onUnsatisfiable": "Hold"}, "2-3", "InForce"),
    ("`placement`", {"placement": {"nodes": "Spread"}}, "2-3", "InForce"),
    ("`releaseDelay`", {"releaseDelay": "5m"}, "2-3", "InForce"),
    ("`rollout`", {"rollout": {"maxConcurrent": 1}}, "2-3", "InForce"),
    ("`isolatedCPUs`", {"isolatedCPUs": "ExclusiveOnly"}, "2-3", "InForce"),
]


def picture(before: AssignmentView | None, policy: PolicyView, *pods: Any) -> NodePicture:
    marked = mark_selected(policy.spec.pods, pods, {})
    release = Release(30.0, "2030-01-01T00:00:30Z", 30) if policy.spec.mode == "None" else None
    seen = NodePicture("node-1", node_view(), (policy,), before, marked)
    return (
        replace(seen, now=Moment(0.0, 0.0), memory=NodeMemory(release=release)) if release else seen
    )


def enforced(before: AssignmentView, picture: NodePicture) -> AssignmentView:
    """The assignment after the decision was written, if one was, and enforced."""
    spec, generation = decide(picture).spec or before.spec, before.generation + 1
    running = [one.pod_uid for one in spec.containers]
    status = enforcer_status(generation, topology=MACHINE, running=running)
    return assignment_view(spec.to_wire(), status, generation=generation)


def row(field: str) -> list[str]:
    (found,) = (line for line in DOCS.read_text().splitlines() if line.startswith(f"| {field}"))
    return [cell.strip() for cell in found.strip("|").split("|")]


@pytest.mark.parametrize(
    ("field", "edit", "new", "reason"), ROWS, ids=[f"{one[0]}-{one[1]}" for one in ROWS]
)
def test_what_an_edit_does(field: str, edit: dict[str, Any], new: str, reason: str) -> None:
    first = assignment_view({}, enforcer_status(1, topology=MACHINE))
    policy = policy_view("policy", SPEC)
    before = enforced(first, picture(first, policy, RUNNING))
    edited = policy_view("policy", SPEC | edit, generation=2)
    after = enforced(before, picture(before, edited, RUNNING, NEW))
    held = {one.pod: str(one.cpus) for one in after.spec.containers}
    assert held == {"a": HELD} | ({"b": new} if new else {})
    outcome = decide(picture(after, edited, RUNNING, NEW)).outcome
    assert outcome is not None
    assert outcome.reason == reason
    _, new_pods, running, reported = row(field)
    assert reported == f"`{reason}`"
    assert "keep" in running
    assert ("no CPUs" in new_pods) >= (not new)
    assert ("outdated" in running) == (reason == WAITS)


def test_every_field_has_a_row() -> None:
    table = DOCS.read_text().split("### What an edit of each field does")[1].split("\n## ")[0]
    aliases = policy_view("policy", {}).spec.to_wire()
    named = {alias for alias in aliases if f"`{alias}" in table}
    assert named == set(aliases)
