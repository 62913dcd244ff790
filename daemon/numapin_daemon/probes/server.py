"""/healthz (no restart is needed) and /readyz (nothing is missing) for the kubelet's probes.

Beside them /metrics for Prometheus, if there are any.
"""

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from threading import Thread
from typing import Final

from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_daemon.options import Address
from numapin_daemon.probes.health import Health
from numapin_daemon.probes.pages import KeptPage, response

REQUEST_SECONDS: Final = 5.0
"""How long a request and its answer may take; the kubelet waits for less."""

MOST_BYTES: Final = 8192
"""The longest head of a request."""

CPU_SHARE: Final = 0.05
"""The part of one CPU that answers may take in the long run, whoever asks however often."""

BURST_SECONDS: Final = 0.1
"""CPU time that answers may take at once after a quiet time."""

MOST_WAITING: Final = 1024
"""How many connections may wait in the kernel, in their order, while none is accepted.

The last of them is accepted after some 4 s in a flood: each takes 0.2 ms. The kubelet waits for 5.
"""

FAILED_SECONDS: Final = 0.1
"""How long nothing is accepted after the kernel refused to."""

MOST_CONNECTIONS: Final = 64
"""Each takes a file of the process. One more closes the oldest, so that a probe is answered."""


class AddressError(Exception):
    """The address of the probes is in use, or it does not belong to this machine."""

    def __init__(self, address: Address, error: OSError) -> None:
        super().__init__(
            f"cannot listen on {address}: {error.strerror or error}; choose another address with "
            "--health-address"
        )


@asynccontextmanager
async def serve_probes(health: Health, address: Address) -> AsyncIterator[Address]:
    """Answer the probes for the duration of the context.

    The kubelet reads the status code, people read the body. A thread of its own answers, so that
    /healthz can say that the caller's event loop stands still; the functions of `health` are called
    in that thread. It keeps the caller's priority: with an ordinary one it would hold the
    interpreter's lock while it waits for a CPU, and the caller's loop would wait for it, for a
    second beside a real-time program. What it takes is bounded instead, whoever asks: `CPU_SHARE`.

    Yields:
        The address, with the port that the kernel chose if 0 was given.

    Raises:
        AddressError: the address is in use, or not this machine's.
    """
    bound: Future[Address] = Future()
    end: Future[None] = Future()
    thread = Thread(
        target=lambda: asyncio.run(_serve(health, address, bound, end)), name="probes", daemon=True
    )
    thread.start()
    try:
        yield await asyncio.wrap_future(bound)
    finally:
        end.set_result(None)
        await asyncio.to_thread(thread.join)


async def _serve(
    health: Health, address: Address, bound: "Future[Address]", end: "Future[None]"
) -> None:
    """Serve until `end` is set; `bound` gets the address, or why it cannot be used."""
    with ExitStack() as stack:
        try:
            listeners = [stack.enter_context(one) for one in await _listen(address)]
        except OSError as error:
            bound.set_exception(AddressError(address, error))
            return
        bound.set_result(Address(address.host, listeners[0].getsockname()[1]))
        door = _Door(listeners, _Connections(health))
        door.open()
        await asyncio.wrap_future(end)
        door.close()


async def _listen(address: Address) -> list[socket.socket]:
    """A socket for each address that the host stands for.

    Raises:
        OSError: one of them cannot be used.
    """
    loop, listeners = asyncio.get_running_loop(), list[socket.socket]()
    found = await loop.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    try:
        for family, _, _, _, name in found:
            try:
                made = socket.create_server(name[:2], family=family, backlog=MOST_WAITING)
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
                continue
            made.setblocking(False)
            listeners.append(made)
    except OSError:
        for one in listeners:
            one.close()
        raise
    return listeners


class _Door:
    """Accepts connections while their answers take little CPU time; else they wait in the kernel.

    They are accepted in their order, so the kubelet's turn comes too.
    """

    def __init__(self, listeners: Sequence[socket.socket], connections: "_Connections") -> None:
        self._listeners, self._connections = listeners, connections
        self._loop = asyncio.get_running_loop()
        self._cpu_time = TokenBucket(BURST_SECONDS, CPU_SHARE)
        self._counted_seconds = time.thread_time()
        self._answers: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Accept what waits, and what comes."""
        for one in self._listeners:
            self._loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Accept nothing any more."""
        self._pause()
        if self._resting is not None:
            self._resting.cancel()

    def _pause(self) -> None:
        for one in self._listeners:
            self._loop.remove_reader(one)

    def _accept(self, listener: socket.socket) -> None:
        """Accept one: its answer begins before the next one is accepted."""
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # the client is gone, or this process has no file left
            self._rest(FAILED_SECONDS)
            return
        answer = self._loop.create_task(self._connections.serve(connection), name="probe")
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)
        self._rest(0.0)

    def _rest(self, least_seconds: float) -> None:
        now_seconds, spent_seconds = time.monotonic(), time.thread_time()
        used_seconds = spent_seconds - self._counted_seconds
        self._counted_seconds = spent_seconds
        rest_seconds = max(least_seconds, self._cpu_time.spend(used_seconds, now_seconds))
        if rest_seconds > 0:
            self._pause()
            self._resting = self._loop.call_later(rest_seconds, self.open)


class _Connections:
    """Answers one request on each connection, and closes it.

    Without a web framework: it would take 2 MiB of memory of each node.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        if health.metrics is not None:
            self._health = replace(health, metrics=KeptPage(health.metrics))
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, connection: socket.socket) -> None:
        """Answer, unless the client is too slow, or many others come meanwhile."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=MOST_BYTES)
        if len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(response(head, self._health))
                await writer.drain()
        except (TimeoutError, EOFError, asyncio.LimitOverrunError, ConnectionError):
            pass  # the client reads nothing then
        finally:
            self._open.pop(writer, None)
            writer.close()
