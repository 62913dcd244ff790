"""The probe pages over real HTTP on a free port of the loopback."""

import asyncio
import itertools
import select
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, closing, suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from aiohttp import ClientSession

from numapin_daemon.options import Address
from numapin_daemon.probes import pages
from numapin_daemon.probes.health import Health, LoopHealth
from numapin_daemon.probes.server import (
    MOST_BYTES,
    MOST_CONNECTIONS,
    REQUEST_SECONDS,
    AddressError,
    _Connections,
    _Door,
    _listen,
    serve_probes,
)
from support.fakes.manual_clock import ManualClock

ANY_PORT = Address("127.0.0.1", 0)


async def get(address: Address, page: str) -> tuple[int, str]:
    async with ClientSession() as session, session.get(f"http://{address}{page}") as answer:
        return answer.status, await answer.text()


async def ask(health: Health, page: str) -> tuple[int, str]:
    async with serve_probes(health, ANY_PORT) as address:
        return await get(address, page)


async def test_a_daemon_that_lacks_nothing_is_ready() -> None:
    assert await ask(Health(missing=dict), "/readyz") == (200, "ok\n")
    assert await ask(Health(missing=dict), "/healthz") == (200, "ok\n")


async def test_ready_says_its_role() -> None:
    health = Health(missing=dict, role=lambda: "standing by")
    assert await ask(health, "/readyz") == (200, "ok: standing by\n")
    assert await ask(health, "/healthz") == (200, "ok\n")


async def test_not_ready_says_what_is_missing() -> None:
    health = Health(lambda: {"pods": "not listed yet", "nodes": "refused"}, role=lambda: "leading")
    assert await ask(health, "/readyz") == (503, "nodes: refused\npods: not listed yet\n")
    assert await ask(health, "/healthz") == (200, "ok\n"), "a restart would not help"


async def test_metrics_have_the_content_type_of_prometheus() -> None:
    health = Health(missing=dict, metrics=lambda: "x 1\n")
    async with serve_probes(health, ANY_PORT) as address:
        found = await exchange(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await get(address, "/x"))[1] == "there are /healthz and /readyz and /metrics\n"
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in head.split(b"\r\n")
    assert body == b"x 1\n"


async def test_there_is_no_page_of_metrics_without_metrics() -> None:
    assert (await ask(Health(missing=dict), "/metrics"))[0] == 404


async def test_documents_are_json_beside_the_other_pages() -> None:
    health = Health(missing=dict, documents={b"/cpus": lambda: '{"cpus":[]}'})
    async with serve_probes(health, ANY_PORT) as address:
        found = await exchange(address, b"GET /cpus?x HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await get(address, "/x"))[1] == "there are /healthz and /readyz and /cpus\n"
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"Content-Type: application/json\r\n" in head
    assert body == b'{"cpus":[]}'


async def test_the_probes_answer_while_the_loop_stands_still() -> None:
    """The kubelet then reads why, instead of running into its time limit."""
    health = Health(missing=dict, fatal=lambda: "the event loop has stood still for 31 s")
    async with serve_probes(health, ANY_PORT) as address:
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://{address}/healthz")  # noqa: ASYNC210 - blocks the loop, as a defect
    with refused.value as answer:
        assert (answer.status, answer.read()) == (503, b"the event loop has stood still for 31 s\n")


async def test_an_address_that_is_taken_is_an_error_with_a_remedy() -> None:
    async with serve_probes(Health(dict), ANY_PORT) as address:
        said = f"cannot listen on 127.0.0.1:{address.port}: .*choose another.*--health-address"
        with pytest.raises(AddressError, match=said):
            async with serve_probes(Health(dict), address):
                pass


async def test_an_address_is_free_again_afterwards() -> None:
    async with serve_probes(Health(dict), ANY_PORT) as address:
        pass
    async with serve_probes(Health(dict), address) as again:
        assert again == address


async def test_an_empty_host_is_every_address() -> None:
    async with serve_probes(Health(dict), ANY_PORT) as free:
        pass
    async with serve_probes(Health(dict), Address("", free.port)) as address:
        assert address == Address("", free.port)
        assert await get(free, "/healthz") == (200, "ok\n")


async def exchange(address: Address, request: bytes) -> bytes:
    """All that is answered before the connection is closed."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    with closing(writer):
        return await reader.read()


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        (b"GET /healthz?verbose HTTP/1.0", b"200 OK"),
        (b"HEAD /healthz HTTP/1.1", b"200 OK"),
        (b"GET / HTTP/1.1", b"404 Not Found"),
        (b"GET /healthz/x HTTP/1.1", b"404 Not Found"),
        (b"POST /healthz HTTP/1.1", b"405 Method Not Allowed"),
        (b"", b"405 Method Not Allowed"),
        (b"\xff\x00 \xff", b"405 Method Not Allowed"),
    ],
    ids=repr,
)
async def test_any_request_is_answered(request_line: bytes, answer: bytes) -> None:
    async with serve_probes(Health(dict), ANY_PORT) as address:
        found = await exchange(address, request_line + b"\r\nHost: x\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 " + answer + b"\r\n")
    body = found.partition(b"\r\n\r\n")[2]
    assert bool(body) is not request_line.startswith(b"HEAD")


@pytest.mark.parametrize(
    "request_head", [b"x" * 2 * MOST_BYTES, b"GET /healthz"], ids=["endless", "cut"]
)
async def test_what_is_no_request_ends_its_connection_alone(request_head: bytes) -> None:
    async with serve_probes(Health(dict), ANY_PORT) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request_head)
        writer.write_eof()
        with suppress(ConnectionError):  # closed with unread bytes
            assert await reader.read() == b""
        writer.close()
        assert await get(address, "/healthz") == (200, "ok\n")


async def test_a_probe_is_answered_whatever_others_keep_open() -> None:
    """Connections are files of the process, and any local user can open some."""
    async with serve_probes(Health(dict), ANY_PORT) as address, AsyncExitStack() as stack:
        readers = []
        for _ in range(MOST_CONNECTIONS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            stack.callback(writer.close)
            readers.append(reader)
        assert await get(address, "/healthz") == (200, "ok\n")
        async with asyncio.timeout(REQUEST_SECONDS / 2):  # before it would be closed in any case
            with suppress(ConnectionError):
                assert await readers[0].read() == b""


async def test_each_of_many_connections_is_answered_in_its_turn() -> None:
    """As the kubelet's, which has come while many others wait."""
    (listener,) = await _listen(ANY_PORT)
    door = _Door([listener], _Connections(Health(dict)))
    with listener, ExitStack() as stack:
        clients = []
        for _ in range(300):
            client = stack.enter_context(socket.create_connection(listener.getsockname(), 5))
            client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            clients.append(client)
        door.open()
        answers = [await asyncio.to_thread(client.recv, 100) for client in clients]
        door.close()
    assert {one.split(b"\r\n")[0] for one in answers} == {b"HTTP/1.1 200 OK"}


async def test_connections_wait_in_the_kernel_once_answers_have_taken_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look at the CPU time finds ten more seconds of it: 200 s of rest."""
    spent = itertools.count(0.0, 10.0)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    (listener,) = await _listen(ANY_PORT)
    address = Address("127.0.0.1", listener.getsockname()[1])
    door = _Door([listener], _Connections(Health(dict)))
    door.open()
    assert await get(address, "/healthz") == (200, "ok\n")
    waiting = asyncio.create_task(get(address, "/healthz"))
    while not select.select([listener], [], [], 0)[0]:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert select.select([listener], [], [], 0)[0], "nobody accepts it"
    door.open()  # as at the end of the rest
    assert await waiting == (200, "ok\n")
    door.close()
    listener.close()


@pytest.mark.parametrize(("seconds", "made"), [(1e9, 1), (0.0, 3)])
async def test_a_page_of_metrics_is_made_once_for_all_who_ask_at_once(
    monkeypatch: pytest.MonkeyPatch, seconds: float, made: int
) -> None:
    monkeypatch.setattr(pages, "PAGE_SECONDS", seconds)
    numbers = itertools.count(1)
    health = Health(missing=dict, metrics=lambda: f"x {next(numbers)}\n")
    async with serve_probes(health, ANY_PORT) as address:
        texts = [(await get(address, "/metrics"))[1] for _ in range(3)]
    assert texts[-1] == f"x {made}\n"


async def test_a_text_that_is_not_unicode_is_answered() -> None:
    health = Health(lambda: {"cgroups": "\udcff"})
    assert await ask(health, "/readyz") == (503, "cgroups: ?\n")


@pytest.fixture
def loop_health(clock: ManualClock) -> LoopHealth:
    return LoopHealth(stale_after_seconds=30, clock=clock)


@pytest.fixture
async def address(loop_health: LoopHealth) -> AsyncIterator[Address]:
    async with serve_probes(loop_health.health(), ANY_PORT) as address:
        yield address


async def test_a_loop_that_makes_passes_is_healthy(address: Address, clock: ManualClock) -> None:
    await clock.advance(30)
    assert await get(address, "/healthz") == (200, "ok\n")


async def test_a_loop_that_stands_still_is_not(
    address: Address, loop_health: LoopHealth, clock: ManualClock
) -> None:
    loop_health.outdated = "less telling"
    await clock.advance(31)
    assert await get(address, "/healthz") == (503, "the last pass ended 31 s ago\n")
    loop_health.outdated = ""
    loop_health.passed({})
    assert await get(address, "/healthz") == (200, "ok\n")


async def test_what_a_restart_would_not_help_is_said_and_restarts_nothing(
    address: Address, loop_health: LoopHealth
) -> None:
    loop_health.remark = "the last 9 passes over the cgroups could do nothing"
    said = "ok, but the last 9 passes over the cgroups could do nothing\n"
    assert await get(address, "/healthz") == (200, said)


async def test_an_outdated_loop_asks_for_a_restart(
    address: Address, loop_health: LoopHealth
) -> None:
    loop_health.passed({})
    loop_health.outdated = "the kubelet has replaced a file"
    assert await get(address, "/healthz") == (503, "the kubelet has replaced a file\n")
    assert await get(address, "/readyz") == (200, "ok\n")


async def test_a_loop_is_ready_when_its_last_pass_lacked_nothing(
    address: Address, loop_health: LoopHealth
) -> None:
    assert await get(address, "/readyz") == (503, "first pass: not ended yet\n")
    loop_health.passed({"runtime": "does not answer", "assignment": "none yet"})
    assert await get(address, "/readyz") == (
        503,
        "assignment: none yet\nruntime: does not answer\n",
    )
    loop_health.passed({})
    assert await get(address, "/readyz") == (200, "ok\n")
