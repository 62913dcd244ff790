"""The parts of a lab: which of them a campaign has hit, and for how long each was away."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.parts.part import READY_SECONDS, Part
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import Watched

LOOK_SECONDS: Final = 3.0
"""How often to ask whether those that start are ready: each question loads a guest."""


class Parts:
    """The parts by name. Any thread may ask; one thread at a time hits a part.

    `downtimes` are those that are over, `kills` counts the processes that were killed.
    """

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = dict(parts)
        self._hit: dict[str, Downtime] = {}
        self._starting: set[str] = set()
        self._looked_at = 0.0
        self._lock = threading.Lock()
        self.downtimes: list[Downtime] = []
        self.kills: Counter[str] = Counter()

    @property
    def names(self) -> tuple[str, ...]:
        """Every part."""
        return tuple(self._parts)

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def kill(self, name: str) -> None:
        """Kill a part; returns when it has ended."""
        self._note(name, stopped=False)
        self.kills[name] += self._parts[name].kill()

    def stop(self, name: str) -> None:
        """Stop a part (SIGSTOP).

        Raises:
            LabError: it does not run.
        """
        self._note(name, stopped=True)
        if not self._parts[name].stop():
            raise self._parts[name].daemon.failure(f"{name} does not run")

    def start(self, name: str) -> None:
        """Start a part that was killed, or let it go on; returns at once."""
        self._parts[name].start()
        self._starting.add(name)

    def is_starting(self, name: str) -> bool:
        """Whether it was started, and was not seen ready since."""
        return name in self._starting

    def wait_ready(self, name: str, seconds: float = READY_SECONDS) -> None:
        """Return when a part that was started is ready; it is not away from then on.

        Raises:
            LabError: it has ended, or is not ready in time.
        """
        self._parts[name].wait_ready(seconds)
        self._return(name)

    def wait_all_ready(self, seconds: float = READY_SECONDS) -> None:
        """Return when all that were started are ready.

        Raises:
            LabError: one has ended, or is not ready in time.
        """
        for name in sorted(self._starting):
            self.wait_ready(name, seconds)
        self.check()

    def look(self) -> None:
        """Ask the starting parts whether they are ready, at most once in a short time."""
        now = time.monotonic()
        if self._starting and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            for name in sorted(self._starting):
                if self._parts[name].ready():
                    self._return(name)

    def was_up(self, name: str, since: float) -> bool:
        """Whether the part was ready from `since` until now."""
        with self._lock:
            hit = any(one.part == name and one.ready_at >= since for one in self.downtimes)
            return not hit and name not in self._hit

    def check(self) -> None:
        """Raise LabError if a part has ended that was not killed."""
        for one in self.ended_by_themselves():
            raise one.failure(f"{one.name} ended without being killed")

    def ended_by_themselves(self) -> list[Watched]:
        """Parts that do not run although the run did not kill them.

        The lock is held for both questions, so that no part is killed in between.
        """
        with self._lock:
            return [
                one.daemon
                for name, one in self._parts.items()
                if name not in self._hit and one.daemon.pid() is None
            ]

    def _note(self, name: str, *, stopped: bool) -> None:
        """From now on it is away."""
        self._starting.discard(name)
        now = time.monotonic()
        with self._lock:
            self._hit.setdefault(name, Downtime(name, now, now, stopped))

    def _return(self, name: str) -> None:
        self._starting.discard(name)
        with self._lock:
            hit = self._hit.pop(name, None)
            if hit is None:
                raise LabError(f"{name} was started without being killed or stopped")
            ready_at = time.monotonic()
            self.downtimes.append(Downtime(name, hit.killed_at, ready_at, hit.stopped))
