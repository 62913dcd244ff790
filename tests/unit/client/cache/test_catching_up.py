"""An informer that is asked to catch up with the API server."""

import asyncio
from dataclasses import replace

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import SHORT_WATCHES, InformerTiming
from numapin_client.client import ApiClient, Source
from numapin_client.resources import Json, Key
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.manual_clock import ManualClock
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, value_of

FAST = InformerTiming(backoff_base_seconds=0.01, backoff_cap_seconds=0.02, chunk_limit=3)
ALL = Source(CONFIG_MAPS)


async def test_catching_up_ends_a_quiet_watch_for_one_whose_bookmark_comes_soon(
    server: FakeApiServer, client: ApiClient
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.version += 5  # as objects of other kinds change
        async with running(informer.catch_up()) as caught_up:
            await eventually(lambda: short_watches(server))
            assert not caught_up.done()
            server.bookmark()
            await eventually(caught_up.done)
        await informer.catch_up()
        assert len(server.snapshots) <= 1


async def test_catching_up_waits_for_a_watch_that_has_not_begun(
    server: FakeApiServer, client: ApiClient
) -> None:
    """As after a restart of the API server, when the copy waits to try again."""
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
    await eventually(lambda: not server.watchers)
    server.version += 5
    async with running(informer.catch_up()) as caught_up:
        await asyncio.wait([caught_up], timeout=0.3)
        assert not caught_up.done()
        async with running(informer.run()):
            await eventually(lambda: short_watches(server))
            server.bookmark()
            await eventually(caught_up.done)
            caught_up.result()


async def test_catching_up_ends_a_back_off(server: FakeApiServer, client: ApiClient) -> None:
    """As after an outage of the API server: it answers, and whoever waits may go on."""
    clock = ManualClock()
    timing = replace(FAST, backoff_base_seconds=1e6, backoff_cap_seconds=1e6, clock=clock)
    informer = Informer(client, ALL, value_of, timing=timing)
    server.answers = [Answer(500)]
    async with running(informer.run()):
        await eventually(clock.pending_seconds)
        assert not informer.synced.is_set()
        async with running(informer.catch_up()) as caught_up:
            await eventually(caught_up.done)
        assert informer.synced.is_set()


async def test_catching_up_ends_a_request_that_is_not_answered(
    server: FakeApiServer, client: ApiClient
) -> None:
    """As one that was sent while packets were lost: it is sent again as late as that lasted."""
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.answers = [Answer(stall=True)]
        server.cut()
        await eventually(lambda: not server.answers)
        server.version += 5
        async with running(informer.catch_up()) as caught_up:
            await eventually(lambda: short_watches(server))
            server.bookmark()
            await eventually(caught_up.done)


async def test_catching_up_does_not_shorten_what_the_server_asked_for(
    server: FakeApiServer, client: ApiClient
) -> None:
    clock = ManualClock()
    informer = Informer(client, ALL, value_of, timing=replace(FAST, clock=clock))
    server.answers = [Answer(500, {"Retry-After": "7"})]
    async with running(informer.run()):
        await eventually(clock.pending_seconds)
        async with running(informer.catch_up()) as caught_up:
            await eventually(lambda: len(server.requests) > 1)
            await clock.advance(6.9)
            assert not caught_up.done()
            await clock.advance(0.2)
            await eventually(caught_up.done)


async def test_a_watch_that_stays_behind_is_replaced_by_a_list(
    server: FakeApiServer, client: ApiClient
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        place = (CONFIG_MAPS.collection_path(), "ns", "a")
        body: Json = {"metadata": {"name": "a", "namespace": "ns"}, "data": {"value": "1"}}
        server.version += 5
        body["metadata"]["resourceVersion"] = str(server.version)
        server.objects[place] = body  # no watch hears of it
        async with running(informer.catch_up()) as caught_up:
            for number in range(SHORT_WATCHES):
                await eventually(lambda: len(short_watches(server)) > number)  # noqa: B023
                await eventually(lambda: bool(server.watchers))
                server.send(None)
            await eventually(caught_up.done)
    assert informer.items == {Key("a", "ns"): "1"}


def short_watches(server: FakeApiServer) -> list[str]:
    asked = [x.query["timeoutSeconds"] for x in server.requests if x.query.get("watch")]
    return [seconds for seconds in asked if seconds == "3"]
