"""What a sieve drops before it is parsed: only what no field of its name asks for."""

import json

import pytest

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.cache.sieve import Sieve, name_of
from numapin_client.client import ApiClient, Source
from numapin_client.resources import NODES, Json
from support.fakes.apiserver import FakeApiServer
from support.real.waiting import eventually, running

OURS = Sieve("nodeName", lambda pod: str(pod["spec"].get("nodeName", "")), {"ours"}.__contains__)


def line(kind: str, body: Json) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode()


def pod(node: str | None, **metadata: object) -> Json:
    return {"metadata": metadata, "spec": {} if node is None else {"nodeName": node}}


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (line("MODIFIED", pod("ours")), True),
        (line("MODIFIED", pod("theirs")), False),
        (line("DELETED", pod("theirs")), False),
        (line("ADDED", pod(None)), True),
        (line("MODIFIED", pod("ours", labels={"nodeName": "theirs"})), True),
        (line("MODIFIED", pod("theirs", labels={"nodeName": "ours"})), True),
        (line("MODIFIED", pod("ours", annotations={"a": '","nodeName":"theirs'})), True),
        (line("MODIFIED", pod("theirs", annotations={"a": '"nodeName":"ours"'})), False),
        (line("BOOKMARK", {"metadata": {"resourceVersion": "7"}}), True),
        (line("ERROR", {"code": 410, "details": {"nodeName": "theirs"}}), True),
        (b'{"type": "MODIFIED", "object": {"spec": {"nodeName": "theirs"}}}', True),
    ],
    ids=[
        "ours",
        "another's",
        "another's that is deleted",
        "no node",
        "a label cannot hide a pod",
        "a label can have one read",
        "a text cannot hide a pod",
        "a text can have none read",
        "a bookmark",
        "an error",
        "another format",
    ],
)
def test_a_line_is_dropped_if_every_such_field_names_another(text: bytes, is_read: bool) -> None:
    assert OURS.may_want(text) is is_read


async def test_an_informer_copies_only_what_the_sieve_takes(
    server: FakeApiServer, client: ApiClient
) -> None:
    def node(name: str, labels: Json | None = None) -> Json:
        return {"metadata": {"name": name, "labels": labels or {}}}

    for name in ("a-1", "b-1"):
        server.put(NODES, node(name))
    wants = Sieve("name", name_of, lambda name: name.startswith("a"))
    copied = Informer(client, Source(NODES), dict, timing=InformerTiming(sieve=wants))
    async with running(copied.run()):
        await copied.synced.wait()
        assert {key.name for key in copied.items} == {"a-1"}
        await eventually(lambda: server.watchers)
        for name in ("b-2", "a-2", "a-3"):
            server.put(NODES, node(name))
        server.remove(NODES, "a-2")
        server.remove(NODES, "b-1")
        await eventually(lambda: {key.name for key in copied.items} == {"a-1", "a-3"})
        server.put(NODES, node("b-3", {"name": "a-1"}))
        server.put(NODES, node("a-4"))
        await eventually(lambda: {key.name for key in copied.items} == {"a-1", "a-3", "a-4"})
