from typing import Any
from unittest.mock import Mock

import pytest

from numapin_client.cache.store import Change, Store
from numapin_client.client import connect
from numapin_client.login.credentials import Login
from numapin_client.resources import Key
from numapin_daemon.logs.log_limit import LINES_AT_ONCE, LogLimit
from numapin_operator.observe import informers
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.informers import MOST_TEXT, build_informers, decode_pod
from numapin_operator.observe.policy_source import kopf_source
from numapin_operator.placement import PodView
from support.fakes.manual_clock import ManualClock
from support.values.operator import pod_body, pod_view


def test_a_pod_that_cannot_be_parsed_shares() -> None:
    body = pod_body("a", "two")
    pod = decode_pod(body)
    assert (pod.name, pod.node, pod.qos, pod.containers) == ("a", "node-1", "BestEffort", ())
    assert decode_pod(pod_body("b")) == pod_view("b")


def test_each_problem_of_a_pod_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A tenant changes a label in a loop; each list repeats the pod too."""
    lines = LogLimit(clock=ManualClock())
    for number in range(1000):
        body = pod_body("a", "two")
        body["metadata"]["labels"] = {"n": str(number)}
        decode_pod(body, lines)
    assert len(caplog.records) == 1
    decode_pod(pod_body("a", "three"), lines)
    decode_pod(pod_body("b", "two"), lines)
    assert len(caplog.records) == 3


def test_lines_about_many_pods_are_bounded_and_short(caplog: pytest.LogCaptureFixture) -> None:
    lines = LogLimit(clock=ManualClock())
    for number in range(1000):
        decode_pod(pod_body(f"p{number}", "9" * 100_000 + "x"), lines)
    assert len(caplog.records) == LINES_AT_ONCE
    assert max(len(vars(one)["error"]) for one in caplog.records) <= MOST_TEXT


def test_an_object_that_cannot_be_decoded_is_logged_once_for_each_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store: Store[int] = Store(lambda body: int(body["value"]))
    for number in range(100):
        store.put({"metadata": {"name": "a", "resourceVersion": str(number)}, "value": "one"})
    assert len(caplog.records) == 1
    store.put({"metadata": {"name": "a"}, "value": "two"})
    store.put({"metadata": {"name": "b"}, "value": "one"})
    assert len(caplog.records) == 3


def test_an_unforeseen_error_in_a_pod_concerns_that_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> PodView:
        raise ZeroDivisionError

    monkeypatch.setattr(informers, "parse_stored_pod", failing)
    assert decode_pod(pod_body("a")).containers == ()


async def test_a_change_that_cannot_be_taken_in_concerns_its_object_alone() -> None:
    async with connect(Login("http://127.0.0.1:1", "a test")) as api:
        state = ClusterState(Mock(side_effect=[ZeroDivisionError, None]))
        pods = build_informers(api, state)["pods"]
        report: Any = pods._on_change
        report([Change(Key(name, "ns"), None, pod_view(name)) for name in ("a", "b")])
        assert {pod.name for pod in state.pods_on("node-1")} == {"a", "b"}


def test_a_watch_that_delivers_nothing_is_given_up_within_a_minute() -> None:
    """Tests with the whole operator shorten these."""
    shortest, longest = informers.TIMING.session_seconds
    assert shortest <= longest
    assert longest + informers.TIMING.grace_seconds <= 60
    assert kopf_source.SESSION_SECONDS < kopf_source.INACTIVE_SECONDS <= 60
