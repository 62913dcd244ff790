"""An event loop whose time passes only while all its tasks wait, and then at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from numapin_daemon.clock import SystemClock

T = TypeVar("T")


class _VirtualLoop(asyncio.SelectorEventLoop):
    """When nothing is ready, it is the time of the next timer."""

    _ready: Any
    _scheduled: Any
    _passed_seconds = 1000.0

    def time(self) -> float:
        return self._passed_seconds

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._passed_seconds = max(self._passed_seconds, self._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


class LoopClock(SystemClock):
    """The monotonic time of the running event loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run it as `asyncio.run` does, in no time; for work that uses no sockets and no threads."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)
