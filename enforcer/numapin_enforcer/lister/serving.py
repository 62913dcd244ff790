"""Keeps the socket served for as long as the enforcer runs, beside its passes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.lister.connections import MOST_WAITING
from numapin_enforcer.lister.in_force import InForce, in_force
from numapin_enforcer.lister.kubelet import Kubelet
from numapin_enforcer.lister.server import Lister, serve
from numapin_enforcer.lister.socket_file import SocketFileError, inode, listening
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.summary import Summary

LOOK_SECONDS: Final = 5.0
"""How often to look whether the socket is still there."""


def _no_wake() -> None:
    """Do nothing."""


class PodResourcesServer:
    """Answers with what the last pass has read back.

    A thread of its own answers, so that a pass waits for the interpreter at most and for no client.
    What it may take is bounded: see `Connections`. If the socket cannot be served that is logged,
    reported and tried again, and nothing else is affected.
    """

    def __init__(
        self,
        path: Path,
        kubelet: Path,
        most_age_seconds: float,
        clock: Clock | None = None,
        wake: Callable[[], object] = _no_wake,
    ) -> None:
        """Serve nothing yet.

        Args:
            path: the socket.
            kubelet: that of the kubelet.
            most_age_seconds: nothing is answered by a pass that is older.
            clock: the machine's clock by default.
            wake: called after each change of `problem`.
        """
        self._path, self._kubelet = path, kubelet
        self._most_age_seconds, self._clock = most_age_seconds, clock or SystemClock()
        self._latest: tuple[Pass, Summary | None] | None = None
        self._made: tuple[object, InForce] | None = None
        self._worker = Worker(
            "pod-resources",
            self._serve,
            expected=(SocketFileError,),
            failure="the podresources socket is not served, it will be tried again",
            backoff=Backoff(1.0, 60.0),
            clock=self._clock,
            wake=wake,
        )
        self._worker.request()

    @property
    def problem(self) -> str:
        """Why the socket is not served; empty if it is, or was not tried yet."""
        why = self._worker.problem
        return f"exporters get no answer: {why}" if why is not None else ""

    def passed(self, one: Pass, has: Summary | None) -> None:
        """A pass has ended; `has` is what it read back, or None if it could not."""
        self._latest = one, has

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._worker.run()

    def in_force(self) -> InForce:
        """What is in force now; called in the thread that answers.

        Raises:
            GRPCError: that is not known.
        """
        latest = self._latest
        if latest is None or (has := latest[1]) is None:
            raise GRPCError(Status.UNAVAILABLE, "numapin has not read the cgroups of this node yet")
        age_seconds = self._clock.monotonic() - latest[0].ended_seconds
        if age_seconds > self._most_age_seconds:
            problem = f"numapin has read the cgroups of this node {age_seconds:.0f} s ago"
            raise GRPCError(Status.UNAVAILABLE, problem)
        if self._made is None or self._made[0] is not latest:
            self._made = latest, in_force(latest[0], has)
        return self._made[1]

    async def _serve(self) -> float:
        """Serve until the file is gone, as when the folder was mounted over; then begin again."""
        if self._path.resolve() == self._kubelet.resolve():
            raise SocketFileError(self._path, "that is the kubelet's own socket; name another one")
        with listening(self._path, MOST_WAITING) as listener:
            made = inode(self._path)
            async with self._answering(listener) as thread:
                self._worker.note_progress()
                while thread.is_alive() and inode(self._path) == made:
                    await self._clock.sleep(LOOK_SECONDS)
        return 0.0

    @asynccontextmanager
    async def _answering(self, listener: socket) -> AsyncIterator[Thread]:
        lister, end = Lister(Kubelet(self._kubelet), self.in_force), Future[None]()
        thread = Thread(
            target=lambda: asyncio.run(serve(listener, lister, end)), name="lister", daemon=True
        )
        thread.start()
        try:
            yield thread
        finally:
            end.set_result(None)
            await asyncio.to_thread(thread.join)
