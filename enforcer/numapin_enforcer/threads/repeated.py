"""Which cgroups have had wide threads, and when the set of each may be written again.

Does no I/O.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from numapin_enforcer.threads.findings import WideThreads

CLEAN_SECONDS: Final = 600.0
"""How long a cgroup must be without wide threads before it is forgotten.

Workers of io_uring end after 5 s without work, and new ones have the wide mask again.
"""

RETRY_SECONDS: Final = 9.0
"""How soon a set is written again; the time doubles each time, up to `MOST_RETRY_SECONDS`.

A little less than the time from one resync to the next: it counts from the end of the writes, and
the next look may come earlier in its pass.
"""

MOST_RETRY_SECONDS: Final = 3600.0
MOST_DOUBLINGS: Final = 10


@dataclass(slots=True)
class _Known:
    """A cgroup with wide threads.

    `is_narrow` if all have the CPUs of the cgroup since its set was written again; `came_back` if
    there were wide ones after that; `times`: how often it was written.
    """

    found: WideThreads
    seen_seconds: float
    due_seconds: float
    is_narrow: bool = False
    came_back: bool = False
    times: int = 0


class RepeatedThreads:
    """What was found of each cgroup. All times are seconds on a clock that only goes forward."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def note_wide(self, found: WideThreads, now_seconds: float) -> bool:
        """A cgroup has wide threads; returns whether its set may be written again now."""
        one = self._known.get(found.path)
        if one is None:
            one = self._known[found.path] = _Known(found, now_seconds, now_seconds)
        one.came_back = one.came_back or one.is_narrow
        one.is_narrow, one.seen_seconds = False, now_seconds
        if not found.cpus <= one.found.cpus:  # the name stays: a status must not change for it
            one.found = replace(one.found, cpus=one.found.cpus | found.cpus)
        return one.due_seconds <= now_seconds

    def note_written(self, path: str, now_seconds: float, *, is_narrow: bool) -> None:
        """Its set was to be written again; `is_narrow` if it has no wide threads since."""
        one = self._known[path]
        seconds = RETRY_SECONDS * 2.0 ** min(one.times, MOST_DOUBLINGS)
        one.due_seconds = now_seconds + min(seconds, MOST_RETRY_SECONDS)
        one.is_narrow, one.times = is_narrow, one.times + 1

    def note_clean(self, path: str, now_seconds: float) -> None:
        """No thread of the cgroup is wide now."""
        one = self._known.get(path)
        if one is not None:
            one.is_narrow = True
            if now_seconds - one.seen_seconds >= CLEAN_SECONDS:
                del self._known[path]

    def forget_except(self, paths: Collection[str]) -> None:
        """Only these cgroups exist."""
        for path in self._known.keys() - set(paths):
            del self._known[path]

    @property
    def wide(self) -> tuple[WideThreads, ...]:
        """The cgroups with wide threads now, and those where some came back lately."""
        return tuple(
            one.found
            for _, one in sorted(self._known.items())
            if one.came_back or not one.is_narrow
        )
