"""The connections of clients, bounded in number and in the CPU time that they may take.

A client may be slow, read nothing, or send without end: whatever it does, the passes of the
enforcer get the interpreter within a moment, and its memory stays small.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Final

from numapin_daemon.flowcontrol.rate_limit import TokenBucket

MOST_CONNECTIONS: Final = 16
"""One more closes the oldest: a client that is there to be served connects again."""

MOST_WAITING: Final = 64
"""How many may wait in the kernel while none is accepted."""

CPU_SHARE: Final = 0.05
"""The part of one CPU that all clients may take in the long run."""

BURST_SECONDS: Final = 0.2
"""CPU time that they may take at once after a quiet time."""

READ_BYTES: Final = 4096
"""What is read at once: frames of HTTP/2 may be so small that a page of them takes 5 ms."""

STUCK_SECONDS: Final = 5.0
"""How long a client may leave unread what was sent to it."""

FAILED_SECONDS: Final = 0.1
"""How long nothing is accepted after the kernel refused to."""

_DAMAGED: Final = (AssertionError, AttributeError, LookupError, NotImplementedError, ValueError)
"""What grpclib raises for frames that it does not expect. After those that h2 rejects it closes
the connection itself."""


class Connections:
    """Accepts connections and reads from them while this takes little CPU time."""

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        """Args: `make` makes what understands one connection; called in the running loop."""
        self._listener, self._make = listener, make
        self._loop = asyncio.get_running_loop()
        self._cpu_time = TokenBucket(BURST_SECONDS, CPU_SHARE)
        self._counted_seconds = time.thread_time()
        self._rest: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[object]] = set()
        self.open: dict[Connection, None] = {}
        self._resume()

    def close(self) -> None:
        """Accept nothing any more, and end all connections."""
        self._loop.remove_reader(self._listener)
        if self._rest is not None:
            self._rest.cancel()
        for one in tuple(self.open):
            one.abort()

    @property
    def is_resting(self) -> bool:
        """Whether nothing is read from any client for a while."""
        return self._rest is not None

    def opened(self, one: "Connection") -> None:
        """One is there; the oldest goes if there are too many."""
        if len(self.open) >= MOST_CONNECTIONS:
            next(iter(self.open)).abort()
        self.open[one] = None

    def count(self, least_seconds: float = 0.0) -> None:
        """Count the CPU time of this thread since the last time; rest if that was too much."""
        spent_seconds = time.thread_time()
        used_seconds = spent_seconds - self._counted_seconds
        self._counted_seconds = spent_seconds
        rest_seconds = self._cpu_time.spend(used_seconds, time.monotonic())
        rest_seconds = max(rest_seconds, least_seconds)
        if rest_seconds > 0 and self._rest is None:
            self._loop.remove_reader(self._listener)
            for one in self.open:
                one.update_reading(is_resting=True)
            self._rest = self._loop.call_later(rest_seconds, self._resume)

    def _resume(self) -> None:
        self._rest = None
        self._loop.add_reader(self._listener, self._accept)
        for one in self.open:
            one.update_reading(is_resting=False)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # the client is gone, or this process has no file left
            self.count(FAILED_SECONDS)
            return
        made = self._loop.connect_accepted_socket(lambda: Connection(self._make(), self), accepted)
        task: asyncio.Task[object] = self._loop.create_task(made, name="connection")
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        self.count()


class Connection(asyncio.BufferedProtocol):
    """One connection; `inner` gets what it reads."""

    def __init__(self, inner: asyncio.Protocol, others: Connections) -> None:
        self._inner, self._others = inner, others
        self._buffer = bytearray(READ_BYTES)
        self._transport: asyncio.Transport
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Source: asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._others.opened(self)
        self._inner.connection_made(transport)
        self.update_reading(is_resting=self._others.is_resting)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002 - always as much
        """Source: asyncio."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Source: asyncio."""
        try:
            self._inner.data_received(bytes(self._buffer[:nbytes]))
        except _DAMAGED:
            self.abort()
        self._others.count()

    def pause_writing(self) -> None:
        """The client does not read: answer nothing more, and end it if it goes on."""
        self._inner.pause_writing()
        loop = asyncio.get_running_loop()
        self._stuck = loop.call_later(STUCK_SECONDS, self._transport.abort)
        self.update_reading(is_resting=self._others.is_resting)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        self._inner.resume_writing()
        self.update_reading(is_resting=self._others.is_resting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Source: asyncio."""
        self._others.open.pop(self, None)
        if self._stuck is not None:
            self._stuck.cancel()
        self._inner.connection_lost(exc)
        self._inner.resume_writing()  # else calls that wait to write would wait for ever

    def update_reading(self, *, is_resting: bool) -> None:
        """Read only while all may, and while the client reads what is sent to it."""
        if is_resting or self._stuck is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abort(self) -> None:
        """End it at once."""
        self._others.open.pop(self, None)
        self._transport.abort()
