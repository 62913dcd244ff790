"""Nothing running moves although its NodeAssignment, or its Node, was deleted and made again."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from numapin_client.resources import Key
from numapin_operator.nodes.decide import Write, decide
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.values.operator import (
    EMPTY,
    Body,
    assignment_view,
    enforcer_status,
    node_view,
    picture,
    pod_view,
    policy_view,
)

RESERVED = policy_view("policy", {"reserved": {"count": 2}})


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def operator(cluster: FakeCluster) -> Operator:
    """Pods `b` and `c` run; `a`, which had the first CPUs, has ended."""
    made = await operator_of_one_node(cluster)
    for second, name in enumerate("abc"):
        made.state.put_pod(
            Key(name, "default"), pod_view(name, "2", bound=f"2026-01-01T00:00:0{second}Z")
        )
    await made.work_until_idle()
    made.state.drop_pod(Key("a", "default"), "node-1")
    report(cluster, "uid-b", "uid-c")
    made.observe()
    await made.work_until_idle()
    assert held(cluster) == {"b": "4-5", "c": "6-7"}
    return made


def in_force(cluster: FakeCluster) -> Body:
    """What the enforcer goes on to enforce and report."""
    found = [
        {"podUID": f"uid-{name}", "container": "main", "cpus": cpus, "exclusive": True}
        for name, cpus in held(cluster).items()
    ]
    return enforcer_status(1, running=["uid-b", "uid-c"]) | {"containers": found}


async def test_a_deleted_assignment_is_made_again_as_the_kernel_has_it(
    operator: Operator, cluster: FakeCluster
) -> None:
    """The operator that finds it deleted has never seen it."""
    status = in_force(cluster)
    del cluster.assignments["node-1"]
    other = Operator(cluster)
    other.state.put_node(node_view())
    for name in ("b", "c", "new"):
        other.add_pod(name)
    other.observe()
    await other.work_until_idle()
    assert "pools" not in spec(cluster), "the enforcer has reported nothing yet"
    cluster.put_status("node-1", status)
    other.observe()
    await other.work_until_idle()
    assert held(cluster) == {"b": "4-5", "c": "6-7", "new": "2-3"}


async def test_a_deleted_assignment_is_made_again_as_it_was(
    operator: Operator, cluster: FakeCluster
) -> None:
    before = spec(cluster)
    del cluster.assignments["node-1"]
    operator.state.drop_assignment("node-1", int(cluster._next()))
    await operator.work_until_idle()
    assert (spec(cluster)["containers"], spec(cluster)["pools"]) == (
        before["containers"],
        before["pools"],
    )
    report(cluster, "uid-b", "uid-c")
    operator.add_pod("new")
    operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5", "c": "6-7", "new": "2-3"}


async def test_a_policy_with_a_fault_makes_a_deleted_assignment_again(
    operator: Operator, cluster: FakeCluster
) -> None:
    before = spec(cluster)
    cluster.put_policy("policy", {"reserved": {"count": 2}, "mode": "Off"})
    del cluster.assignments["node-1"]
    operator.state.drop_assignment("node-1", int(cluster._next()))
    operator.observe()
    await operator.work_until_idle()
    assert spec(cluster) == before


async def test_one_that_no_enforcer_has_seen_is_deleted_with_its_policy(
    operator: Operator, cluster: FakeCluster
) -> None:
    del cluster.assignments["node-1"]
    operator.state.drop_assignment("node-1", int(cluster._next()))
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5", "c": "6-7"}
    cluster.policies.clear()
    operator.observe()
    await operator.work_until_idle()
    assert cluster.assignments == {}


@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "found by a write"])
async def test_an_assignment_from_a_backup_is_written_as_it_was_last(
    operator: Operator, cluster: FakeCluster, is_listed: bool
) -> None:
    """What is watched on two connections comes in either order: here pods before assignments."""
    backup = copy.deepcopy(cluster.assignments["node-1"])
    operator.add_pod("d")
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5", "c": "6-7", "d": "2-3"}
    operator.state.drop_pod(Key("b", "default"), "node-1")
    report(cluster, "uid-c", "uid-d")
    operator.observe()
    await operator.work_until_idle()
    cluster.assignments["node-1"] = backup
    operator.state.assignments.start_over()
    operator.add_pod("e")
    if is_listed:
        operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"c": "6-7", "d": "2-3", "e": "4-5"}


async def test_a_deletion_that_a_write_finds_loses_nothing(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.state.drop_pod(Key("a", "default"), "node-1")
    await operator.work_until_idle()
    before = held(cluster)
    del cluster.assignments["node-1"]
    operator.add_pod("d")
    await operator.work_until_idle()
    assert held(cluster).items() >= before.items()


async def test_who_leads_later_plans_by_what_was_written_since_a_deletion(
    operator: Operator, cluster: FakeCluster
) -> None:
    """All replicas see a deletion. Only the one that leads makes the assignment again."""
    standby = Operator(cluster)
    standby.state.put_node(node_view())
    standby.observe()
    del cluster.assignments["node-1"]
    version = int(cluster._next())
    for one in (operator, standby):
        one.state.drop_assignment("node-1", version)
    await operator.work_until_idle()
    standby.observe()
    assert standby.state.lost.keys() == {"node-1"}
    report(cluster, "uid-b", "uid-c")
    operator.observe()
    operator.add_pod("d")
    await operator.work_until_idle()
    standby.observe()
    assert (held(cluster)["d"], standby.state.lost) == ("2-3", {})


async def test_what_was_released_does_not_come_back(
    operator: Operator, cluster: FakeCluster
) -> None:
    cluster.policies.clear()
    operator.observe()
    await operator.work_until_idle()
    report(cluster)
    operator.observe()
    await operator.work_until_idle()
    assert cluster.assignments == {}
    operator.state.drop_assignment("node-1", int(cluster._next()))
    assert operator.state.lost == {}


async def test_a_node_that_is_registered_again_keeps_its_assignment(
    operator: Operator, cluster: FakeCluster
) -> None:
    before = spec(cluster)
    operator.state.drop_node("node-1")
    await operator.work_until_idle()
    operator.state.put_node(replace(node_view(), uid="uid-node-1-again"))
    await operator.work_until_idle()
    assert spec(cluster) == before


def planned(status: Body, *names: str) -> dict[str, str] | None:
    """What the pods get on a node whose assignment was made again; None if nothing is planned."""
    pods = [pod_view(name, bound=f"2026-01-01T00:00:0{n}Z") for n, name in enumerate(names)]
    decision = decide(picture(assignment_view(EMPTY, status), *pods, policies=(RESERVED,)))
    if decision.spec is None or decision.spec.pools is None:
        assert decision.outcome is not None
        assert decision.outcome.reason == "WaitingForEnforcer"
        return None
    assert decision.write is Write.REPLACE
    return {one.pod: str(one.cpus) for one in decision.spec.containers}


def entry(name: str, cpus: str, **others: Any) -> Body:
    return {"podUID": f"uid-{name}", "container": "main", "cpus": cpus, "exclusive": True} | others


def test_nothing_is_planned_until_the_cgroups_were_read() -> None:
    status = enforcer_status(1)
    del status["running"]
    assert planned(status, "a") is None
    assert planned(status | {"running": []}, "a") == {"a": "2-3"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([entry("b", "6-7")], {"a": "2-3", "b": "6-7"}, id="as-it-was"),
        pytest.param(
            [entry("b", "6-7", exclusive=False)],
            {"a": "2-3", "b": "6-7"},
            id="while-another-container-starts-none-is-exclusive",
        ),
        pytest.param([entry("b", "6")], {"a": "2-3", "b": "6"}, id="waits-for-a-second-cpu"),
        pytest.param([entry("b", "4-7")], {"a": "2-3", "b": "4-5"}, id="more-than-it-asks-for"),
        pytest.param(
            [entry("a", "4-5"), entry("b", "5-6")], {"a": "4-5", "b": "2-3"}, id="two-on-one-cpu"
        ),
        pytest.param([entry("b", "64-65")], {"a": "2-3", "b": "4-5"}, id="of-another-machine"),
        pytest.param([entry("x", "6-7")], {"a": "2-3", "b": "4-5"}, id="of-an-unknown-pod"),
    ],
)
def test_what_is_taken_over(found: list[Body], expected: dict[str, str]) -> None:
    status = enforcer_status(1, running=["uid-a", "uid-b"]) | {"containers": found}
    assert planned(status, "a", "b") == expected


def test_a_pod_keeps_the_containers_that_are_read_back() -> None:
    two = pod_view("b", "2")
    [main] = two.containers
    two = replace(two, containers=(main, replace(main, name="starting")))
    status = enforcer_status(1, running=["uid-b"]) | {"containers": [entry("b", "6-7")]}
    made = decide(picture(assignment_view(EMPTY, status), two, policies=(RESERVED,))).spec
    assert made is not None
    assert {one.container: str(one.cpus) for one in made.containers} == {"main": "6-7"}
