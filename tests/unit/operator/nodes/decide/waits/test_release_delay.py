"""A policy that goes and returns keeps what running containers have."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.duration import MAX_SECONDS, duration_seconds
from numapin_client.errors import ConnectionFailedError
from numapin_client.resources import Key
from numapin_operator.nodes.decide import NodePicture, Write, decide
from numapin_operator.nodes.decide.decision import NOTHING, Moment, NodeMemory, Release
from numapin_operator.nodes.decide.waits import with_waits
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.in_force import as_written
from numapin_operator.policies.status import Phase
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.values.operator import (
    PLANNED,
    REPORTED,
    assignment_view,
    node_view,
    picture,
    policy_body,
    policy_view,
)

NONE = policy_view("policy", {"mode": "None", "reserved": {"count": 2}}, generation=2)

AT = "2030-01-01T00:00:30Z"

STATIC = {"reserved": {"count": 2}}


def until(due: float, seen: NodePicture) -> NodePicture:
    """The picture with a release at AT, as it is at 0 by the monotonic clock."""
    memory = NodeMemory(release=Release(due, AT, 30))
    return replace(seen, memory=memory, now=Moment(0.0, 0.0))


class Delays:
    """The releases of one node, as the pictures that are seen of it begin and end them."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.memory = clock, NOTHING

    def release_at(self, seen: NodePicture) -> str | None:
        now = Moment(self.clock.now().timestamp(), self.clock.monotonic())
        begun = with_waits(replace(seen, memory=self.memory, now=now))
        self.memory = begun.memory
        return begun.release_at


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("30s", 30), ("5m", 300), ("2h", 7200)])
def test_durations(text: str, seconds: int) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("policies", [(), (NONE,)])
def test_a_node_keeps_its_assignment_while_the_release_is_delayed(policies: Any) -> None:
    before = assignment_view(PLANNED, REPORTED)
    delayed = until(30, picture(before, policies=policies))
    announced = decide(delayed)
    assert announced.spec == replace(before.spec, release_at=AT)
    told = replace(before, spec=announced.spec)
    assert decide(replace(delayed, assignment=told)).write is Write.NOTHING
    released = decide(until(0, replace(delayed, assignment=told)))
    assert released.spec is not None
    assert (released.spec.mode, released.spec.release_at) == ("None", None)


def test_the_condition_of_a_policy_of_mode_none_says_so() -> None:
    before = assignment_view(PLANNED, REPORTED)
    delayed = until(30, picture(before, policies=(NONE,)))
    outcome = decide(delayed).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.UNDER_WAY, "ReleaseDelayed")
    assert f"given back at {AT}, when spec.releaseDelay, 30s, has passed" in outcome.message


def test_an_assignment_that_changed_no_cgroup_is_not_delayed() -> None:
    delays = Delays(ManualClock())
    empty = assignment_view({"policy": {"name": "policy", "generation": 1}})
    assert delays.release_at(picture(empty, policies=())) is None
    assert delays.release_at(picture(None, policies=())) is None


async def test_the_delay_is_that_of_the_last_policy_and_begins_again_when_it_returns() -> None:
    clock, before = ManualClock(), assignment_view(PLANNED, REPORTED)
    delays = Delays(clock)
    slow = policy_view("policy", STATIC | {"releaseDelay": "5m"})
    gone, present = picture(before, policies=()), picture(before, policies=(slow,))
    assert delays.release_at(gone) == AT, "nothing is known of its policy"
    assert delays.release_at(present) is None
    gone = replace(gone, release_delay="5m")
    assert delays.release_at(gone) == "2030-01-01T00:05:00Z"
    clock.stand_still(100)
    assert delays.release_at(gone) == "2030-01-01T00:05:00Z"
    assert delays.release_at(present) is None
    assert delays.release_at(gone) == "2030-01-01T00:06:40Z"
    clock.stand_still(301)
    assert delays.release_at(gone) is None
    assert delays.release_at(picture(before, policies=(NONE,))) is None, "30 s have passed too"


@pytest.mark.parametrize(
    ("written", "passed_seconds"),
    [
        pytest.param("2030-01-01T00:00:10Z", 10, id="as-written"),
        pytest.param("2029-12-31T23:00:00Z", 0, id="passed"),
        pytest.param("9999-01-01T00:00:00Z", MAX_SECONDS, id="another-clock"),
    ],
)
async def test_a_restarted_operator_goes_on_with_the_delay(
    written: str, passed_seconds: int
) -> None:
    clock = ManualClock()
    gone = picture(assignment_view(PLANNED | {"releaseAt": written}, REPORTED), policies=())
    delays = Delays(clock)
    assert delays.release_at(gone) == (written if passed_seconds else None)
    clock.stand_still(max(0, passed_seconds - 1))
    assert delays.release_at(gone) == (written if passed_seconds else None)
    clock.stand_still(1)
    assert delays.release_at(gone) is None


async def test_a_time_that_is_none_is_no_reason_to_release_earlier() -> None:
    written = PLANNED | {"releaseAt": "2030-13-01T00:00:00Z"}
    gone = picture(assignment_view(written, REPORTED), policies=())
    assert Delays(ManualClock()).release_at(gone) == AT


async def test_an_operator_that_has_not_seen_the_policy_waits_as_long_as_was_announced() -> None:
    """It has only seen an older state of the policy, with a shorter delay."""
    written = "2030-01-01T01:00:00Z"
    gone = picture(assignment_view(PLANNED | {"releaseAt": written}, REPORTED), policies=())
    clock = ManualClock()
    delays = Delays(clock)
    assert delays.release_at(replace(gone, release_delay="30s")) == written
    clock.stand_still(3599)
    assert delays.release_at(replace(gone, release_delay="30s")) == written
    clock.stand_still(1)
    assert delays.release_at(gone) is None


async def test_an_edit_shortens_the_delay_of_its_own_policy_only() -> None:
    clock, before = ManualClock(), assignment_view(PLANNED, REPORTED)
    delays = Delays(clock)

    def give_up(uid: str, delay: str) -> str | None:
        spec = {"mode": "None", "releaseDelay": delay}
        giver = replace(policy_view("policy", spec), uid=uid)
        return delays.release_at(replace(picture(before, policies=(giver,)), release_delay=delay))

    assert give_up("one", "1h") == "2030-01-01T01:00:00Z"
    assert give_up("one", "30m") == "2030-01-01T00:30:00Z"
    assert give_up("other", "30s") == "2030-01-01T00:30:00Z", "this was announced"


HOUR = 3600.0

WANTS = STATIC | {"releaseDelay": "10m"}

STALLED_POLICIES = {
    "invalid-mode-none": WANTS | {"cpuQuota": "Halved", "mode": "None"},
    "invalid": WANTS | {"cpuQuota": "Halved"},
    "impossible": WANTS | {"reserved": {"cpus": "64"}},
}


@pytest.mark.parametrize("fields", STALLED_POLICIES.values(), ids=STALLED_POLICIES.keys())
@pytest.mark.parametrize("is_written", [True, False], ids=["withdrawn", "not-withdrawn"])
async def test_an_announced_release_does_not_count_once_a_policy_wants_the_node_again(
    fields: Any, is_written: bool
) -> None:
    """That policy is stalled; it goes an hour later, and the node has the whole delay again."""
    cluster = FakeCluster()
    operator = await two_pods(cluster)
    del cluster.policies["policy"]
    operator.observe()
    await operator.work_until_idle()
    assert spec(cluster)["releaseAt"] == AT
    cluster.put_policy("second", fields)
    operator.observe()
    if not is_written:
        cluster.failures = [ConnectionFailedError("PUT", "the API server is away")]
        with pytest.raises(ConnectionFailedError):
            await operator.controller.reconcile("node-1")
        await operator.queue.take()
        operator.queue.done("node-1")
    else:
        await operator.work_until_idle()
        assert "releaseAt" not in spec(cluster)
        assert held(cluster) == {"b": "4-5"}
    operator.clock.stand_still(HOUR)
    del cluster.policies["second"]
    operator.observe()
    await operator.work_until_idle()
    assert (spec(cluster)["mode"], spec(cluster)["releaseAt"]) == ("Static", "2030-01-01T01:10:00Z")


async def test_a_node_that_waits_for_its_turn_is_not_released_either() -> None:
    before = assignment_view(PLANNED | {"releaseAt": AT}, REPORTED)
    own = as_written(policy_view("other"), before)
    kept = decide(picture(before, policies=(own,))).spec
    assert kept is not None
    assert (kept.release_at, kept.pools) == (None, before.spec.pools)


async def test_every_replica_knows_the_delay_of_a_policy_that_it_has_never_planned_by() -> None:
    """A policy is edited and deleted while another replica leads, or none does."""
    state = ClusterState()
    state.put_node(node_view())
    for version, delay in enumerate(("30s", "1h"), 10):
        body = policy_body("policy", STATIC | {"releaseDelay": delay}, version=version)
        state.put_policy(body)
    state.drop_policy(body | {"metadata": body["metadata"] | {"resourceVersion": "99"}})
    assert picture_of(state, "node-1").release_delay == "1h"
    state.drop_node("node-1")
    assert picture_of(state, "node-1").release_delay is None


@pytest.mark.parametrize(
    ("fields", "delay"),
    [
        pytest.param({"releaseDelay": "10m", "cpuQuota": "Halved"}, "10m", id="another-field"),
        pytest.param({"releaseDelay": "tomorrow"}, "5m", id="the-field-itself"),
        pytest.param({"cpuQuota": "Halved"}, "5m", id="left-out"),
        pytest.param("no fields", "5m", id="no-object"),
    ],
)
def test_an_invalid_policy_keeps_its_delay(fields: Any, delay: str) -> None:
    """After a restart, nothing else is known of it."""
    body = policy_body("policy") | {"spec": fields}
    body["status"] = {"rolledOut": {"generation": 1, "spec": {"releaseDelay": "5m"}}}
    view = PolicyView.decode(body)
    assert view.problem
    assert view.spec.release_delay == delay


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
    assert spec(cluster) == before | {"releaseAt": AT}
    cluster.put_policy("policy", policy["spec"])
    operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"b": "4-5"}
    assert "releaseAt" not in spec(cluster)


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
