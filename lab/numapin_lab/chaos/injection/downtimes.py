"""Which parts are away because the run killed them, and which ended by themselves."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from numapin_lab.chaos.observation.samples import Downtime
from numapin_lab.processes.daemons import Watched


class Downtimes:
    """Remembers what was away when; any thread may ask, one at a time takes a part away."""

    def __init__(self, daemons: Mapping[str, Watched]) -> None:
        self._daemons = dict(daemons)
        self._down: set[str] = set()
        self._held = threading.Lock()
        self.completed: list[Downtime] = []
        self.kills: Counter[str] = Counter()

    @contextmanager
    def away(self, part: str) -> Iterator[Watched]:
        """The part may be dead in here, and works again at the end."""
        daemon = self._daemons[part]
        with self._held:
            self._down.add(part)
        killed_at = time.monotonic()
        self.kills[part] += daemon.pid() is not None
        yield daemon
        with self._held:
            self.completed.append(Downtime(part, killed_at, time.monotonic()))
            self._down.discard(part)

    def was_up(self, part: str, since: float) -> bool:
        """Whether the part worked from `since` until now."""
        with self._held:
            hit = any(one.part == part and one.ready_at >= since for one in self.completed)
            return not hit and part not in self._down

    def ended_by_themselves(self) -> list[Watched]:
        """Parts that do not run though nobody took them away.

        Nobody can, between our looking who is away and our looking who runs.
        """
        with self._held:
            return [
                one
                for name, one in self._daemons.items()
                if name not in self._down and one.pid() is None
            ]
