"""Which parts are down because the run killed them, and which ended by themselves."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from numapin_campaigns.observation.samples import Downtime
from numapin_lab.processes.daemons import Watched


class Downtimes:
    """Records when each part was down; any thread may read, one thread at a time kills a part."""

    def __init__(self, daemons: Mapping[str, Watched]) -> None:
        self._daemons = dict(daemons)
        self._down: set[str] = set()
        self._lock = threading.Lock()
        self.completed: list[Downtime] = []
        self.kills: Counter[str] = Counter()

    @contextmanager
    def down(self, part: str) -> Iterator[Watched]:
        """The caller may kill the part in here, and makes it ready again before the end."""
        daemon = self._daemons[part]
        with self._lock:
            self._down.add(part)
        killed_at = time.monotonic()
        self.kills[part] += daemon.pid() is not None
        yield daemon
        self._complete(Downtime(part, killed_at, time.monotonic()))

    @contextmanager
    def stopped(self, part: str) -> Iterator[Watched]:
        """The caller may stop the part (SIGSTOP) in here, and lets it go on before the end."""
        with self._lock:
            self._down.add(part)
        stopped_at = time.monotonic()
        yield self._daemons[part]
        self._complete(Downtime(part, stopped_at, time.monotonic(), stopped=True))

    def _complete(self, downtime: Downtime) -> None:
        with self._lock:
            self.completed.append(downtime)
            self._down.discard(downtime.part)

    def was_up(self, part: str, since: float) -> bool:
        """Whether the part was ready from `since` until now."""
        with self._lock:
            hit = any(one.part == part and one.ready_at >= since for one in self.completed)
            return not hit and part not in self._down

    def ended_by_themselves(self) -> list[Watched]:
        """Parts that do not run although the run did not kill them.

        The lock is held for both questions, so that no part is killed in between.
        """
        with self._lock:
            return [
                one
                for name, one in self._daemons.items()
                if name not in self._down and one.pid() is None
            ]
