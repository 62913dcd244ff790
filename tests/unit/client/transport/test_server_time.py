"""Which time the API server has, by its answers."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from numapin_client.client import ApiClient
from numapin_client.resources import NODES, Key
from numapin_client.transport.connection import Connection
from numapin_client.transport.server_time import ServerClock, ServerTime
from support.fakes.apiserver import FakeApiServer

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
"""The server's time at 0 of the monotonic clock."""


def date(seconds: float) -> str:
    return format_datetime(BEGIN + timedelta(seconds=int(seconds)), usegmt=True)


def test_before_an_answer_nothing_is_known() -> None:
    assert ServerTime().now(0.0) is None


@pytest.mark.parametrize("header", [None, "", "tomorrow", "Tue, 32 Jan 2030 00:00:00 GMT"])
def test_an_answer_without_a_date_says_nothing(header: str | None) -> None:
    server = ServerTime()
    server.note(header, 1.0, 1.1)
    assert server.now(2.0) is None


def test_it_is_never_ahead_of_the_server_and_comes_closer_with_each_answer() -> None:
    server = ServerTime()
    behind = []
    for number in range(1, 200):
        sent = number * 1.618
        server.note(date(sent + 0.05), sent, sent + 0.1)
        now = server.now(sent + 0.1)
        assert now is not None
        behind.append((BEGIN + timedelta(seconds=sent + 0.1) - now).total_seconds())
    assert min(behind) >= -1e-6
    assert behind == pytest.approx(sorted(behind, reverse=True))
    assert behind[0] < 1.1
    assert behind[-1] < 0.15


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_clock_that_was_set_is_followed(step: int) -> None:
    server = ServerTime()
    for sent in range(20):
        server.note(date(sent), sent, sent + 0.01)
    server.note(date(20 + step), 20, 20.01)
    now = server.now(21.0)
    assert now is not None
    assert abs((now - BEGIN).total_seconds() - 21 - step) <= 1.01


async def test_a_client_learns_it_from_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock is a day ahead."""
    async with FakeApiServer() as server, Connection(server.login) as connection:
        server.put(NODES, {"metadata": {"name": "one"}})
        clock = ServerClock(connection.server_time)
        true = time.time()
        ahead = datetime.fromtimestamp(true, UTC) + timedelta(days=1)
        monkeypatch.setattr("numapin_daemon.clock.SystemClock.now", lambda _: ahead)
        assert clock.now() == ahead
        await ApiClient(connection).get(NODES, Key("one"))
        assert abs(clock.now().timestamp() - true) < 3600
