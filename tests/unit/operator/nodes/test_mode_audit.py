"""Mode Audit plans as Static does, and nobody is told before the plan is put in force."""

from typing import Any

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.annotation.content import annotations
from numapin_operator.annotation.refusals import refusals
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, operator_of_one_node, report, spec

POLICY = {"reserved": {"count": 2}, "releaseDelay": "0s", "startGate": "Wait"}
PODS = {"a": "2", "b": "3", "large": "512"}


async def settle(operator: Operator) -> None:
    await operator.work_until_idle()
    report(operator.cluster, *(f"uid-{one}" for one in PODS))
    operator.observe()
    await operator.work_until_idle()


async def edit(operator: Operator, mode: str) -> dict[str, Any]:
    """What the assignment says with another mode, without what follows from the edit itself."""
    operator.cluster.put_policy("policy", POLICY | {"mode": mode})
    operator.observe()
    await settle(operator)
    found = spec(operator.cluster)
    return {key: one for key, one in found.items() if key not in {"mode", "policy", "startGate"}}


def told(cluster: FakeCluster) -> set[tuple[str, str]]:
    return {(one.pod, one.reason) for one in (*cluster.events, *cluster.notices)}


@pytest.fixture
async def operator() -> Operator:
    made = await operator_of_one_node(FakeCluster())
    await edit(made, "Audit")
    for name, cpu in PODS.items():
        made.add_pod(name, cpu)
    await settle(made)
    return made


async def test_the_plan_is_that_of_static(operator: Operator) -> None:
    audited = await edit(operator, "Audit")
    assert "startGate" not in spec(operator.cluster)
    assert {one["pod"] for one in audited["containers"]} == {"a", "b"}
    assert {one["pod"] for one in audited["refused"]} == {"large"}
    assert await edit(operator, "Static") == audited


async def test_pods_are_told_when_the_plan_is_put_in_force(operator: Operator) -> None:
    assert not told(operator.cluster)
    await edit(operator, "Static")
    names = {name for name, _ in told(operator.cluster)}
    assert names == set(PODS)


async def test_no_annotation_says_what_is_only_planned(operator: Operator) -> None:
    planned = NodeAssignmentSpec.from_wire(spec(operator.cluster))
    assert not annotations(planned, None)
    assert not refusals(planned)
