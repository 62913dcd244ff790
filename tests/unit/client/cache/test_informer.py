"""An informer of a server that changes, ends its watches and forgets."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from numapin_client.cache import informer as informer_module
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import BATCH, InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import CHUNK_LIMIT, ApiClient, Source
from numapin_client.resources import NODE_ASSIGNMENTS, Json, Key
from numapin_daemon.slices import Slices
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import gone
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, CountingClient, in_sync, truth, value_of

FAST = InformerTiming(backoff_base_seconds=0.01, backoff_cap_seconds=0.02, chunk_limit=3)
ALL = Source(CONFIG_MAPS)


def config_map(name: str, value: str, namespace: str = "ns") -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"value": value}}


def fill(server: FakeApiServer, count: int) -> None:
    for number in range(count):
        server.put(CONFIG_MAPS, config_map(f"m{number}", "first"))


def resumed_at(server: FakeApiServer) -> list[str]:
    return [x.query["resourceVersion"] for x in server.requests if x.query.get("watch")]


async def test_a_list_of_many_chunks_is_taken_in(server: FakeApiServer, client: ApiClient) -> None:
    fill(server, 10)
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert informer.items == truth(server)
        assert len(server.snapshots) == 3


async def test_other_tasks_get_turns_while_a_chunk_is_taken_in(
    server: FakeApiServer, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer_module, "Slices", partial(Slices, slice_seconds=0.0))
    fill(server, 5 * BATCH)
    seen: set[int] = set()
    informer = Informer(client, ALL, value_of, timing=InformerTiming())

    async def look() -> None:
        while True:
            seen.add(len(informer.items))
            await asyncio.sleep(0)

    async with running(informer.run()), running(look()):
        await informer.synced.wait()
    assert seen >= {0, BATCH, 2 * BATCH, 3 * BATCH, 4 * BATCH}


async def test_changes_are_applied_and_reported(server: FakeApiServer, client: ApiClient) -> None:
    reported: list[Change[str]] = []
    informer = Informer(client, ALL, value_of, reported.extend, FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.put(CONFIG_MAPS, config_map("a", "1"))
        server.put(CONFIG_MAPS, config_map("a", "2"))
        server.remove(CONFIG_MAPS, "a", "ns")
        await eventually(lambda: len(reported) == 3)
    key = Key("a", "ns")
    assert reported == [Change(key, None, "1"), Change(key, "1", "2"), Change(key, "2", None)]
    assert informer.items == {}


async def test_a_change_of_what_is_not_decoded_is_not_reported(
    server: FakeApiServer, client: ApiClient
) -> None:
    reported: list[Change[str]] = []
    informer = Informer(client, ALL, value_of, reported.extend, FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.put(CONFIG_MAPS, config_map("a", "1"))
        server.put(CONFIG_MAPS, config_map("a", "1") | {"extra": True})
        server.put(CONFIG_MAPS, config_map("b", "2"))
        await eventually(lambda: len(informer.items) == 2)
    assert [change.new for change in reported] == ["1", "2"]


async def test_an_object_that_cannot_be_decoded_concerns_itself_alone(
    server: FakeApiServer, client: ApiClient
) -> None:
    """Listed or watched: the others are copied, and what it was before stays."""
    server.put(CONFIG_MAPS, {"metadata": {"name": "odd", "namespace": "ns"}})
    server.put(CONFIG_MAPS, config_map("a", "1"))
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.put(CONFIG_MAPS, config_map("a", "1") | {"data": None})
        server.put(CONFIG_MAPS, config_map("b", "2"))
        await eventually(lambda: len(informer.items) == 2)
    assert informer.items == {Key("a", "ns"): "1", Key("b", "ns"): "2"}


async def test_the_watch_asks_for_what_the_source_says(
    server: FakeApiServer, client: ApiClient
) -> None:
    source = Source(NODE_ASSIGNMENTS, field_selector="metadata.name=node-1", label_selector="a=b")
    timing = InformerTiming(session_seconds=(7.0, 7.0))
    async with running(Informer(client, source, value_of, timing=timing).run()):
        await eventually(lambda: bool(server.watchers))
    listed, watched = (request.query for request in server.requests)
    selectors = {"fieldSelector": "metadata.name=node-1", "labelSelector": "a=b"}
    assert listed == selectors | {"limit": str(CHUNK_LIMIT)}
    assert watched == selectors | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "100",
        "timeoutSeconds": "7",
    }


@pytest.mark.parametrize("ending", ["clean", "cut"])
async def test_an_ended_watch_goes_on_where_it_was(
    server: FakeApiServer, client: CountingClient, ending: str
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.put(CONFIG_MAPS, config_map("a", "1"))
        await eventually(lambda: len(informer.items) == 1)
        if ending == "clean":
            server.send(None)
        else:
            server.cut()
        await eventually(lambda: len(server.watchers) == 1 and len(resumed_at(server)) == 2)
        server.put(CONFIG_MAPS, config_map("b", "2"))
        await eventually(lambda: informer.items == truth(server) and in_sync(informer))
    assert client.lists == 1
    assert resumed_at(server) == ["100", "101"]


async def test_a_bookmark_moves_the_place_to_go_on(
    server: FakeApiServer, client: ApiClient
) -> None:
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.version = 500
        server.bookmark()
        server.send(None)
        await eventually(lambda: len(resumed_at(server)) == 2)
    assert resumed_at(server) == ["100", "500"]


@pytest.mark.parametrize("as_event", [True, False])
async def test_what_was_deleted_while_history_was_lost_is_reported(
    server: FakeApiServer, client: CountingClient, as_event: bool
) -> None:
    reported: list[Change[str]] = []
    server.gone_as_event = as_event
    fill(server, 4)
    informer = Informer(client, ALL, value_of, reported.extend, FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        reported.clear()
        server.cut()
        server.watchers[0].chosen = lambda _: False
        server.remove(CONFIG_MAPS, "m2", "ns")
        server.put(CONFIG_MAPS, config_map("m3", "second"))
        server.forget_history()
        await eventually(lambda: client.lists == 2 and informer.items == truth(server))
    assert sorted(reported, key=lambda change: change.key) == [
        Change(Key("m2", "ns"), "first", None),
        Change(Key("m3", "ns"), "first", "second"),
    ]


async def test_a_list_that_expires_between_chunks_begins_again(
    server: FakeApiServer, client: ApiClient
) -> None:
    fill(server, 7)
    reported: list[Change[str]] = []

    def forget(changes: Sequence[Change[str]]) -> None:
        reported.extend(changes)
        if len(reported) == 3:
            server.remove(CONFIG_MAPS, "m0", "ns")
            server.forget_history()

    informer = Informer(client, ALL, value_of, forget, FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert informer.items == truth(server)
    assert len(informer.items) == 6


async def test_a_list_that_expires_begins_again_with_larger_chunks(
    server: FakeApiServer, client: ApiClient
) -> None:
    fill(server, 7)
    server.answers = [gone(), gone()]
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert informer.items == truth(server)
    assert [x.query.get("limit") for x in server.requests[:3]] == ["3", "15", "75"]


async def test_a_list_that_always_expires_is_never_asked_for_in_one_answer(
    server: FakeApiServer, client: ApiClient
) -> None:
    """One answer with 150,000 pods would not fit into the operator's memory."""
    fill(server, 7)
    server.answers = [gone() for _ in range(7)]
    informer = Informer(client, ALL, value_of, timing=FAST)
    async with running(informer.run()):
        await informer.synced.wait()
        assert informer.items == truth(server)
    limits = [x.query.get("limit") for x in server.requests[:8]]
    assert limits == ["3", "15", "75", "3", "15", "75", "3", "15"]


async def test_a_selected_namespace_is_all_that_is_seen(
    server: FakeApiServer, client: ApiClient
) -> None:
    server.put(CONFIG_MAPS, config_map("a", "1", "other"))
    informer = Informer(client, Source(CONFIG_MAPS, "ns"), value_of, timing=FAST)
    async with running(informer.run()):
        await eventually(lambda: bool(server.watchers))
        server.put(CONFIG_MAPS, config_map("b", "1", "other"))
        server.put(CONFIG_MAPS, config_map("c", "1"))
        await eventually(lambda: bool(informer.items))
    assert informer.items == {Key("c", "ns"): "1"}


async def test_it_ends_when_it_is_cancelled(server: FakeApiServer, client: ApiClient) -> None:
    async with running(Informer(client, ALL, value_of, timing=FAST).run()):
        await eventually(lambda: bool(server.watchers))
    await eventually(lambda: not server.watchers)
