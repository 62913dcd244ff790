"""A policy that goes and returns keeps what running containers have."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.duration import duration_seconds
from numapin_client.resources import Key
from numapin_operator.nodes.decide import Write, decide
from numapin_operator.nodes.release_delay import ReleaseDelays
from numapin_operator.policies.status import Phase
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.values.operator import (
    PLANNED,
    POLICY,
    REPORTED,
    assignment_view,
    enforcer_status,
    picture,
    pod_view,
    policy_view,
)

NONE = policy_view("policy", {"mode": "None", "reserved": {"count": 2}}, generation=2)
STATIC = {"reserved": {"count": 2}}


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("30s", 30), ("5m", 300), ("2h", 7200)])
def test_durations(text: str, seconds: int) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("policies", [(), (NONE,)])
def test_a_node_keeps_its_assignment_while_the_release_is_delayed(policies: Any) -> None:
    before = assignment_view(PLANNED, REPORTED)
    delayed = replace(picture(before, policies=policies), release_in_seconds=1.0)
    assert decide(delayed).write is Write.NOTHING
    assert decide(replace(delayed, release_in_seconds=0.0)).write is Write.REPLACE


def test_the_condition_of_a_policy_of_mode_none_says_so() -> None:
    before = assignment_view(PLANNED, REPORTED)
    delayed = replace(picture(before, policies=(NONE,)), release_in_seconds=1.0)
    outcome = decide(delayed).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.UNDER_WAY, "ReleaseDelayed")
    assert "spec.releaseDelay, 30s, has passed" in outcome.message


def test_an_assignment_that_changed_no_cgroup_is_not_delayed() -> None:
    delays = ReleaseDelays(lambda _: None, ManualClock())
    empty = assignment_view({"policy": {"name": "policy", "generation": 1}})
    assert delays.left_seconds(picture(empty, policies=())) == 0
    assert delays.left_seconds(picture(None, policies=())) == 0


async def test_the_delay_is_that_of_the_last_policy_and_begins_again_when_it_returns() -> None:
    clock, before = ManualClock(), assignment_view(PLANNED, REPORTED)
    delays = ReleaseDelays(lambda _: None, clock)
    slow = policy_view("policy", STATIC | {"releaseDelay": "5m"})
    gone, present = picture(before, policies=()), picture(before, policies=(slow,))
    assert delays.left_seconds(gone) == 30, "nothing is known of its policy"
    assert delays.left_seconds(present) == 0
    assert delays.left_seconds(gone) == 300
    clock.stand_still(100)
    assert delays.left_seconds(gone) == 200
    assert delays.left_seconds(present) == 0
    assert delays.left_seconds(gone) == 300
    clock.stand_still(301)
    assert delays.left_seconds(gone) == 0
    assert delays.left_seconds(picture(before, policies=(NONE,))) == 0, "30 s have passed too"


async def two_pods(cluster: FakeCluster) -> Operator:
    operator = await operator_of_one_node(cluster)
    cluster.put_policy("policy", STATIC)
    for name in "ab":
        operator.add_pod(name)
    operator.observe()
    await operator.work_until_idle()
    operator.state.drop_pod(Key("a", "default"), "node-1")
    report(cluster, "uid-b")
    operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5"}, "it would go to 2-3 if it were placed again"
    return operator


async def test_a_policy_that_is_deleted_and_applied_again_moves_nothing() -> None:
    cluster = FakeCluster()
    operator = await two_pods(cluster)
    before, policy = spec(cluster), cluster.policies.pop("policy")
    operator.observe()
    await operator.work_until_idle()
    assert spec(cluster) == before
    cluster.put_policy("policy", policy["spec"])
    operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5"}


async def test_a_policy_that_stays_away_is_released_after_the_delay() -> None:
    cluster = FakeCluster()
    operator = await two_pods(cluster)
    del cluster.policies["policy"]
    operator.observe()
    await operator.work_until_idle()
    assert spec(cluster)["mode"] == "Static"
    operator.clock.stand_still(30)
    operator.queue.add("node-1")
    await operator.work_until_idle()
    assert spec(cluster)["mode"] == "None"


READ_BACK = {"podUID": "uid-b", "container": "main", "cpus": "4-5", "exclusive": True}


@pytest.mark.parametrize(
    ("found", "cpus"),
    [
        pytest.param([READ_BACK], "4-5", id="still-there"),
        pytest.param([READ_BACK | {"exclusive": False}], "2-3", id="not-exclusive-any-more"),
        pytest.param([READ_BACK | {"cpus": "4-6"}], "2-3", id="not-what-it-asks-for"),
        pytest.param([READ_BACK | {"podUID": "uid-x"}], "2-3", id="an-unknown-pod"),
        pytest.param([READ_BACK | {"container": "x"}], "2-3", id="an-unknown-container"),
        pytest.param([READ_BACK, READ_BACK | {"container": "x"}], "2-3", id="twice"),
        pytest.param([READ_BACK | {"cpus": "64-65"}], "2-3", id="cpus-that-do-not-exist"),
        pytest.param([], "2-3", id="nothing"),
    ],
)
def test_a_policy_that_returns_keeps_what_the_status_reads_back(found: Any, cpus: str) -> None:
    status = enforcer_status(1, running=["uid-b"]) | {"containers": found}
    before = assignment_view({"mode": "None"}, status, generation=2)
    made = decide(picture(before, pod_view("b"), policies=(POLICY,))).spec
    assert made is not None
    assert [str(one.cpus) for one in made.containers] == [cpus]
