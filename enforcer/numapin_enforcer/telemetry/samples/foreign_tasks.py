"""Which exclusive containers share CPUs with other tasks, for the status. Does no I/O itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.telemetry.samples.overlap import CpuTimes, Overlaps, exclusive_containers

SAMPLES_TO_NAME: Final = 2
"""After so many samples in a row with foreign tasks a container is named."""

SAMPLES_TO_FORGET: Final = 6
"""After so many samples in a row without any it is named no more: each change is a write."""

LEAST_SECONDS: Final = 1.0
"""A shorter time between two samples says little: on cgroup v2 a tick is 10 ms."""


@dataclass(slots=True)
class _Container:
    name: str
    with_some: int = 0
    without: int = 0
    is_named: bool = False


class ForeignTasks:
    """CPU time that other tasks used on exclusive CPUs, whatever cgroup they are in, or none."""

    def __init__(self, counters: CpuTimes, clock: Clock | None = None) -> None:
        self._overlaps, self._clock = Overlaps(counters), clock or SystemClock()
        self._taken_at: float | None = None
        self._known: dict[str, _Container] = {}

    def look(self, tree: Tree, desired: Mapping[str, Desired]) -> None:
        """Take a sample. Call it at each resync."""
        now_seconds = self._clock.monotonic()
        elapsed_seconds = now_seconds - self._taken_at if self._taken_at is not None else 0.0
        if self._taken_at is not None and elapsed_seconds < LEAST_SECONDS:
            return
        containers = exclusive_containers(tree, desired)
        known, self._known, self._taken_at = self._known, {}, now_seconds
        if not containers:
            self._taken_at = None
            return
        sample = self._overlaps.take(containers, elapsed_seconds)
        for one in containers:
            found = known.get(one.path) or _Container("/".join(one.labels))
            self._known[one.path] = _judged(found, has_foreign=one.path in sample.foreign)

    @property
    def found(self) -> tuple[str, ...]:
        """The containers with foreign tasks: namespace, pod and name, sorted."""
        return tuple(sorted(one.name for one in self._known.values() if one.is_named))


def _judged(one: _Container, *, has_foreign: bool) -> _Container:
    with_some = one.with_some + 1 if has_foreign else 0
    without = 0 if has_foreign else one.without + 1
    is_named = with_some >= SAMPLES_TO_NAME or (one.is_named and without < SAMPLES_TO_FORGET)
    return _Container(one.name, with_some, without, is_named)
