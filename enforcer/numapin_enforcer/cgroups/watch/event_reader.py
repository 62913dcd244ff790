"""Reads the events of a cgroup tree in an event loop, and reports only those that matter."""

import time
from collections.abc import Callable
from typing import Protocol


class EventSource(Protocol):
    """A watch whose events are read from a descriptor."""

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        ...

    @property
    def was_empty(self) -> bool:
        """Whether the last `collect` found no event at all."""
        ...

    def collect(self) -> bool:
        """Take events off the queue; returns whether any of them matters."""
        ...


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make it."""
        ...


class EventLoop(Protocol):
    """What is needed of an event loop; asyncio's has it."""

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> None:
        """Call `callback` while `fd` is readable."""
        ...

    def remove_reader(self, fd: int, /) -> bool:
        """Stop that; False if it was not done."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call `callback` once, after `delay` seconds."""
        ...


RestRule = Callable[[float], float]
"""How long to read no events, in seconds, after a read in which none mattered.

The argument is the CPU time of the read, in seconds."""


class EventReader:
    """Waits for events of one watch that matter; then stops until it is asked to listen again.

    The descriptor stays readable as long as events are queued, and a loop that has it in its
    selector turns without a pause. So it is there only while a caller waits for an event.
    """

    def __init__(
        self,
        loop: EventLoop,
        watch: EventSource,
        on_news: Callable[[float], None],
        rest_seconds: RestRule,
    ) -> None:
        """Args: `on_news` is called once for each time of listening, and must not raise.

        Its argument is the CPU time of the read, in seconds.
        """
        self._loop, self._watch = loop, watch
        self._on_news, self._rest_seconds = on_news, rest_seconds
        self._descriptor = watch.fileno()
        self._timer: Timer | None = None
        self._listens = False

    def listen(self) -> None:
        """Call `on_news` at the next event that matters, also if it is queued already."""
        self._listens = True
        self._loop.add_reader(self._descriptor, self._read)

    def pause(self) -> None:
        """Read nothing and wake for nothing; events stay in the queue."""
        self._stop_listening()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _read(self) -> None:
        began_seconds = time.thread_time()
        is_news = self._watch.collect()
        spent_seconds = time.thread_time() - began_seconds
        if is_news:
            self.pause()
            self._on_news(spent_seconds)
        elif self._watch.was_empty:
            self.listen()
        elif rest_seconds := self._rest_seconds(spent_seconds):
            # In a lasting stream the timer alone leads to the next read: that costs half as much.
            self._stop_listening()
            self._timer = self._loop.call_later(rest_seconds, self._read)
        elif not self._listens:
            self.listen()

    def _stop_listening(self) -> None:
        if self._listens:
            self._loop.remove_reader(self._descriptor)
            self._listens = False
