"""Whatever happens between us and the server, the copy ends up as the server's state."""

import asyncio
import itertools
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import Source, connect
from numapin_client.resources import Json, Key
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer, gone
from support.real.waiting import eventually, running
from support.values.informers import CONFIG_MAPS, in_sync

FAST = InformerTiming(
    session_seconds=(0.2, 0.2),
    grace_seconds=0.1,
    backoff_base_seconds=0.001,
    backoff_cap_seconds=0.002,
    chunk_limit=2,
)
VALUES = itertools.count()
NAMES = ("a", "b", "c", "d", "e")


def put(server: FakeApiServer, name: str) -> None:
    data = {"value": str(next(VALUES))}
    server.put(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "ns"}, "data": data})


def remove(server: FakeApiServer, name: str) -> None:
    if (CONFIG_MAPS.collection_path(), "ns", name) in server.objects:
        server.remove(CONFIG_MAPS, name, "ns")


def replace_server(server: FakeApiServer, name: str) -> None:
    """Come back with an etcd that is new: far lower versions, other objects."""
    server.cut()
    server.version, server.oldest = server.version // 1000, 0
    server.history.clear()
    server.snapshots.clear()
    server.objects.clear()
    put(server, name)


Step = Callable[[FakeApiServer, str], None]
STEPS: dict[str, Step] = {
    "put": put,
    "remove": remove,
    "cut": lambda server, _: server.cut(),
    "end": lambda server, _: server.send(None),
    "forget": lambda server, _: server.forget_history(),
    "bookmark": lambda server, _: server.bookmark(),
    "garbage": lambda server, _: server.send(b"}{\n"),
    "half": lambda server, _: server.send(b'{"type": "ADDED", "obj'),
    "busy": lambda server, _: server.answers.append(Answer(503)),
    "gone": lambda server, _: server.answers.append(gone()),
    "other words": lambda server, _: server.answers.append(Answer(200, body=b"<html>")),
    "gone as status": lambda server, _: setattr(server, "gone_as_event", False),
    "replace": replace_server,
}
PAUSES = st.sampled_from([0.0, 0.0, 0.001, 0.01])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(NAMES), PAUSES), max_size=25)
)
def test_the_copy_ends_up_as_the_servers_state(steps: list[tuple[str, str, float]]) -> None:
    asyncio.run(_live_through(steps))


async def _live_through(steps: list[tuple[str, str, float]]) -> None:
    reported: dict[Key, str] = {}

    def listen(changes: Sequence[Change[str]]) -> None:
        for change in changes:
            assert reported.get(change.key) == change.old
            if change.new is None:
                del reported[change.key]
            else:
                reported[change.key] = change.new

    async with FakeApiServer() as server, connect(server.login) as client:
        server.version = 10**30
        informer = Informer(client, Source(CONFIG_MAPS), _value, listen, FAST)
        async with running(informer.run()):
            for step, name, pause_seconds in steps:
                STEPS[step](server, name)
                await asyncio.sleep(pause_seconds)
            await eventually(lambda: informer.items == _truth(server) and in_sync(informer))
            assert reported == informer.items


def _value(body: Json) -> str:
    return str(body["data"]["value"])


def _truth(server: FakeApiServer) -> dict[Key, str]:
    return {Key.of(body): _value(body) for body in server.objects.values()}
