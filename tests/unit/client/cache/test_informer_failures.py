"""An informer of a server that refuses, stalls, cuts and talks nonsense."""

import asyncio
from dataclasses import replace

import pytest

from numapin_client import errors
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import Hooks, InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source, connect
from numapin_client.resources import Key
from numapin_client.transport.timeouts import Timeouts
from numapin_daemon.clock import SystemClock
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.manual_clock import ManualClock
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, CountingClient, in_sync, truth, value_of, watches

FAST = InformerTiming(backoff_base_seconds=0.01, backoff_cap_seconds=0.02)
ALL = Source(CONFIG_MAPS)


def put(server: FakeApiServer, name: str, value: str = "1") -> None:
    metadata = {"name": name, "namespace": "ns"}
    server.put(CONFIG_MAPS, {"metadata": metadata, "data": {"value": value}})


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_a_server_with_another_history_is_listed_again(
    server: FakeApiServer, client: CountingClient, ending: str
) -> None:
    """Its versions are lower than ours: it would hold back all events up to ours."""
    put(server, "a")
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.version = 5
        server.history.clear()
        server.objects.clear()
        put(server, "of-the-new-server")
        if ending == "cut":
            server.cut()
        else:
            server.send(None)
        await eventually(lambda: informer.items == truth(server))
    assert client.lists == 2


async def test_a_failure_that_is_kept_holds_no_frame_of_the_connection(
    server: FakeApiServer, client: CountingClient
) -> None:
    """Their cycles would become too old to be searched for while the next attempt is awaited."""
    put(server, "a")
    timing = InformerTiming((0.1, 0.1), 0.1, backoff_base_seconds=0.01, backoff_cap_seconds=0.01)
    informer = Informer(client, ALL, value_of, timing=timing)
    async with running(informer.run()):
        await eventually(lambda: informer.problem is not None)
        assert informer.problem is not None
        problem = informer.problem
        assert (problem.__traceback__, problem.__cause__, problem.__context__) == (None, None, None)


async def test_a_silent_watch_is_given_up_after_its_session(
    server: FakeApiServer, client: CountingClient
) -> None:
    put(server, "a")
    timing = InformerTiming((0.1, 0.1), 0.1, backoff_base_seconds=0.01, backoff_cap_seconds=0.01)
    informer = Informer(client, ALL, value_of, timing=timing)
    async with running(informer.run()):
        await eventually(lambda: isinstance(informer.problem, errors.IdleTimeoutError))
        await eventually(lambda: in_sync(informer))
        put(server, "b")
        await eventually(lambda: informer.items == truth(server))
    assert client.lists == 1, "what is silent need not be listed again"


async def test_a_quiet_watch_that_ends_is_asked_for_again_at_once(
    server: FakeApiServer, client: CountingClient
) -> None:
    """Where nothing changes nothing is sent: that is no failure, and must not add up to waits."""
    timing = InformerTiming(
        backoff_base_seconds=1e6, backoff_cap_seconds=1e6, very_short_seconds=0.0
    )
    informer = Informer(client, ALL, value_of, timing=timing)
    async with running(informer.run()):
        for count in range(1, 6):
            await eventually(lambda n=count: watches(server) == n and bool(server.watchers))  # type: ignore[misc]
            server.send(None)
        await eventually(lambda: watches(server) == 6)
    assert client.lists == 1


async def test_a_server_that_does_not_answer_is_asked_again(server: FakeApiServer) -> None:
    put(server, "a")
    server.answers = [Answer(stall=True)]
    timeouts = Timeouts(request_seconds=0.2)
    async with connect(server.login, timeouts) as client:
        informer = Informer(client, ALL, value_of, timing=FAST)
        async with running(informer.run()):
            await informer.synced.wait()
            assert informer.items == truth(server)


@pytest.mark.parametrize(
    "nonsense",
    [b"garbage\n", b'"text"\n', b'{"type": "ADDED"}\n', b'{"type": "WHAT", "object": {}}\n'],
)
async def test_nonsense_is_answered_by_a_new_list(
    server: FakeApiServer, client: CountingClient, nonsense: bytes
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.send(nonsense)
        await eventually(lambda: client.lists == 2)
        put(server, "a")
        await eventually(lambda: informer.items == truth(server))


async def test_an_event_cut_in_the_middle_is_asked_for_again(
    server: FakeApiServer, client: CountingClient
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.send(b'{"type": "ADDED", "object": {"meta')
        server.send(None)
        put(server, "a")
        await eventually(lambda: informer.items == truth(server) and in_sync(informer))
    assert client.lists == 1


async def test_an_event_larger_than_any_buffer_is_read(
    server: FakeApiServer, client: ApiClient
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        put(server, "large", "x" * 3_000_000)
        await eventually(lambda: informer.items == truth(server))


@pytest.mark.parametrize("status", [429, 500, 503, 401, 403, 404])
async def test_refusals_are_waited_out(
    server: FakeApiServer, client: CountingClient, status: int
) -> None:
    put(server, "a")
    server.answers = [Answer(status)] * 3
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert informer.items == truth(server)
    assert client.lists == 4


@pytest.mark.parametrize("status", [429, 503])
async def test_a_watch_refused_for_load_goes_on_where_it_was(
    server: FakeApiServer, client: CountingClient, status: int
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.answers = [Answer(status)] * 3
        server.cut()
        await eventually(lambda: not server.answers and bool(server.watchers))
        put(server, "a")
        await eventually(lambda: informer.items == truth(server))
    assert client.lists == 1


class ImpatientClock(SystemClock):
    """Notes how long each sleep is to last, and ends it at once."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


async def test_the_wait_that_the_server_asks_for_is_kept(
    server: FakeApiServer, client: ApiClient
) -> None:
    clock = ImpatientClock()
    server.answers = [Answer(429, {"Retry-After": "7"})]
    informer = Informer(client, ALL, value_of, timing=replace(FAST, clock=clock))
    async with running(informer.run()), asyncio.timeout(20):
        await informer.synced.wait()
    assert 7 <= clock.waits[0] <= 7 + FAST.backoff_cap_seconds


async def test_a_watch_that_ends_at_once_is_not_asked_for_without_pause(
    server: FakeApiServer, client: ApiClient
) -> None:
    clock = ManualClock()
    timing = InformerTiming(backoff_base_seconds=1e6, backoff_cap_seconds=1e6, clock=clock)
    informer = Informer(client, ALL, value_of, timing=timing)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.send(None)
        await eventually(lambda: bool(clock.pending_seconds()))
        assert watches(server) == 1
        await clock.advance(1e6)
        await eventually(lambda: watches(server) == 2)


async def test_it_says_whether_it_is_connected(server: FakeApiServer, client: ApiClient) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    assert not in_sync(informer)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        await eventually(lambda: in_sync(informer))
        server.answers = [Answer(503)] * 1000
        server.cut()
        await eventually(lambda: isinstance(informer.problem, errors.UnavailableError))
        assert not in_sync(informer)
        server.answers = []
        await eventually(lambda: in_sync(informer))


async def test_it_says_since_when_it_has_no_watch(server: FakeApiServer) -> None:
    clock = ManualClock()
    timing = replace(FAST, clock=clock)
    async with connect(server.login) as client:
        informer = Informer(client, ALL, value_of, timing=timing)
        began = clock.monotonic()
        assert informer.behind_since == began
        async with running(informer.run()):
            await clock.until(lambda: informer.behind_since is None)
            server.answers = [Answer(503)] * 3
            await clock.advance(5)
            server.cut()
            await clock.until(lambda: informer.behind_since == began + 5)
            for _ in range(10):
                await clock.until(lambda: clock.pending_seconds() or informer.behind_since is None)
                await clock.advance(0.01)
            await clock.until(lambda: informer.behind_since is None)


async def test_what_the_owner_has_seen_counts_for_the_history(
    server: FakeApiServer, client: CountingClient
) -> None:
    """The answer to a write may be newer than every event; the server then loses that write."""
    put(server, "a")
    started_over: list[bool] = []
    written = server.version + 10
    informer = Informer(client, ALL, value_of, timing=FAST)
    informer.hooks = Hooks(
        lambda: 0 if started_over else written,
        lambda: started_over.append(informer.synced.is_set()),
    )
    async with running(informer.run()):
        await eventually(lambda: len(server.watchers) == 1)
        assert started_over == [False], "an older list is of a server with another history"
        started_over.clear()
        server.cut()
        await eventually(lambda: bool(started_over))
        await eventually(lambda: len(server.watchers) == 1)
    assert started_over == [True], "so is a watch that would start at an older version"
    assert client.lists == 2


async def test_the_owner_learns_which_list_is_complete(
    server: FakeApiServer, client: CountingClient
) -> None:
    """And at which version what it lacks was deleted: an answer to a write may come later."""
    reported: list[Change[str]] = []
    lists: list[tuple[str, set[Key]]] = []
    for name in ("a", "b", "c", "d"):
        put(server, name)
    informer = Informer(client, ALL, value_of, reported.extend, FAST)
    informer.hooks = Hooks(listed=lambda version: lists.append((version, set(informer.items))))
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        assert lists == [(str(server.version), set(truth(server)))]
        removed = server.remove(CONFIG_MAPS, "a", "ns")
        await eventually(lambda: len(informer.items) == 3)
        server.forget_history()
        server.remove(CONFIG_MAPS, "b", "ns")
        server.forget_history()
        server.cut()
        await eventually(lambda: len(lists) == 2)
    versions = [change.version for change in reported[-2:]]
    assert versions == [removed["metadata"]["resourceVersion"], lists[1][0]]


async def test_an_outage_is_logged_once(
    server: FakeApiServer, client: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again every few seconds, which may take hours."""
    informer = Informer(client, ALL, value_of, timing=FAST)
    server.answers = [Answer(503)] * 20
    async with running(informer.run()):
        await informer.synced.wait()
    (logged,) = [one for one in caplog.records if one.message.startswith("cannot follow")]
    assert "503" in logged.__dict__["error"]
