"""What is shown again: every change, also one that arrives while something is being read."""

import asyncio
from typing import Any

import pytest

from numapin_cli.live import follow as module
from numapin_cli.live.follow import follow
from numapin_client.client import Source, connect
from numapin_client.errors import ForbiddenError
from numapin_client.resources import NODES, Key
from support.fakes.apiserver import FakeApiServer


def node(label: str) -> dict[str, Any]:
    return {"metadata": {"name": "node-1", "labels": {"step": label}}}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("quick")
async def test_a_change_that_arrives_during_a_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delivered, done, shown = asyncio.Event(), asyncio.Event(), list[str]()
    decode = module._version

    def version(body: dict[str, Any]) -> str:
        if body["metadata"]["labels"]["step"] == "2":
            delivered.set()
        return decode(body)

    def show(value: str, problem: str) -> None:
        shown.append(value)
        if value == "2":
            done.set()

    monkeypatch.setattr(module, "_version", version)
    async with FakeApiServer() as server, connect(server.login) as client:
        server.put(NODES, node("0"))

        async def read() -> str:
            found = await client.get(NODES, Key("node-1"))
            if shown and not delivered.is_set():
                server.put(NODES, node("2"))
                await delivered.wait()
            return str(found["metadata"]["labels"]["step"])

        task = asyncio.create_task(follow(client, [Source(NODES)], read, show))
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert shown[0] == "0"
    assert shown[-1] == "2"


@pytest.mark.usefixtures("quick")
async def test_what_cannot_be_read_later_is_said_beside_the_last_value() -> None:
    problems, done = list[tuple[str, str]](), asyncio.Event()

    def show(value: str, problem: str) -> None:
        problems.append((value, problem))
        if problem:
            done.set()

    async with FakeApiServer() as server, connect(server.login) as client:
        server.put(NODES, node("0"))

        async def read() -> str:
            found = await client.get(NODES, Key("node-1"))
            server.forbidden.add("get nodes")
            return str(found["metadata"]["labels"]["step"])

        task = asyncio.create_task(follow(client, [Source(NODES)], read, show))
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert problems[0] == ("0", "")
        assert problems[-1][0] == "0"
        assert "tester may not get nodes" in problems[-1][1]
        with pytest.raises(ForbiddenError):
            await follow(client, [Source(NODES)], read, show)
