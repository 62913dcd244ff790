"""Keeps the plug-in registered with the runtime, for as long as it is wanted."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.runtime.nri.frames import NriProtocolError
from numapin_enforcer.runtime.nri.values import (
    NriContainer,
    NriError,
    Plugin,
    RuntimeTimeouts,
    Sets,
)

NAME: Final = "numapin"
INDEX: Final = "99"
"""Plug-ins are called in the order of their indices: this one last. A container whose CPUs two of
them set is not created, and only a later one sees what an earlier one has set."""

LOOK_SECONDS: Final = 5.0
"""How often to look for a socket that is not there."""

CONNECT_SECONDS: Final = 5.0


class NriPlugin:
    """Connects, registers and serves, and does so again whenever the connection has ended.

    Attributes:
        socket: the runtime's NRI socket.
        about: what the runtime says of itself; None while it does not call.
        lost: how often a connection has ended on which the runtime called.
    """

    def __init__(
        self,
        socket: Path,
        plugin: Plugin,
        wake: Callable[[], object] = bool,
        clock: Clock | None = None,
    ) -> None:
        """Args: `plugin` answers the runtime; `wake` is called when `problem` may have changed."""
        self.socket, self._plugin, self._wake = socket, plugin, wake
        self.about: RuntimeTimeouts | None = None
        self.lost = 0
        self._is_wanted = self._is_missing = False
        self._writer: asyncio.StreamWriter | None = None
        self._worker = Worker(
            "nri",
            self._serve,
            expected=(NriError, NriProtocolError, OSError),
            failure="the runtime does not call the NRI plug-in, it will be registered again",
            wake=wake,
            backoff=Backoff(0.2, LOOK_SECONDS),
            clock=clock or SystemClock(),
        )

    def want(self, *, is_wanted: bool) -> None:
        """Whether the runtime must call; returns at once."""
        if is_wanted == self._is_wanted:
            return
        self._is_wanted = is_wanted
        if not is_wanted and self._writer is not None:
            self._writer.close()
        self._worker.request(skip_backoff=True)

    @property
    def problem(self) -> str:
        """Why the runtime does not call; empty if it does, or must not."""
        if self.about is not None or not self._is_wanted:
            return ""
        if self._is_missing:
            return f"the runtime has no NRI socket {self.socket}"
        if self._worker.problem is None:
            return f"the runtime has not registered the plug-in yet ({self.socket})"
        return f"{self._worker.problem} ({self.socket})"

    @property
    def is_connecting(self) -> bool:
        """Whether the runtime will call in a moment, for all that is known."""
        is_sound = self._worker.problem is None and not self._is_missing
        return self._is_wanted and self.about is None and is_sound

    async def run(self) -> None:
        """Serve while it is wanted, until cancelled."""
        await self._worker.run()

    async def _serve(self) -> float | None:
        if not self._is_wanted:
            return None
        was_missing, self._is_missing = self._is_missing, not self.socket.exists()
        if self._is_missing:
            if not was_missing:
                self._wake()
            return LOOK_SECONDS
        await self._connect_and_serve()
        return None

    async def _connect_and_serve(self) -> None:
        """Serve one connection. What it needs is imported here: that saves 1 MiB on other nodes."""
        from numapin_enforcer.runtime.nri.connection import Connection  # noqa: PLC0415

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, self._writer = await asyncio.open_unix_connection(self.socket)
        except TimeoutError as error:
            raise NriError(f"it did not accept in {CONNECT_SECONDS:g} s") from error
        try:
            await Connection(reader, self._writer, self).serve(NAME, INDEX)
        except (NriError, OSError):
            if self._is_wanted:
                raise
        finally:
            self._end()

    def _end(self) -> None:
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        if self.about is not None:
            self.lost += 1
            self.about = None
            self._wake()

    def registered(self, about: RuntimeTimeouts) -> None:
        """The runtime calls from now on."""
        self.about = about
        self._worker.note_progress()
        self._wake()
        self._plugin.registered(about)

    async def create(self, container: NriContainer) -> Sets | None:
        """See `Plugin.create`."""
        return await self._plugin.create(container)

    async def start(self, container: NriContainer) -> None:
        """See `Plugin.start`."""
        await self._plugin.start(container)
