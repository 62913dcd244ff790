"""What comes to exclusive CPUs again and again, for the status. Does no I/O itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import Disturbance
from numapin_enforcer.telemetry.noise.look import Look
from numapin_enforcer.telemetry.samples.interrupts import increases

TASK_SHARE: Final = 0.001
"""A task disturbs a CPU if it uses more of it than this."""

INTERRUPTS_PER_SECOND: Final = 1.0
"""An interrupt disturbs a CPU if it comes there more often."""

LOOKS_TO_NAME: Final = 2
LOOKS_TO_FORGET: Final = 5
"""After so many looks in a row with it, or without, it is named, or no more: each is a write."""

MOST_NAMED: Final = 16
MOST_KNOWN: Final = 512
"""Tasks choose their names: more of them than this in one look are passed over."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    cpus: CpuSet
    seen: int = 0
    missed: int = 0
    is_named: bool = False


class Summary:
    """Compares each look with the one before."""

    def __init__(self) -> None:
        self._last: Look | None = None
        self._known: dict[_Key, _Known] = {}
        self.found: tuple[Disturbance, ...] = ()
        """What is named, that which was named first first."""

    def note(self, look: Look, elapsed_seconds: float) -> None:
        """Take in a look, so long after the one before."""
        last, self._last = self._last, look
        if last is None:
            return
        disturbed: dict[_Key, CpuSet] = {}
        for key, cpu in (*_tasks(last, look, elapsed_seconds), *_came(last, look, elapsed_seconds)):
            if key in disturbed or len(disturbed) < MOST_KNOWN:
                disturbed[key] = disturbed.get(key, CpuSet()) | CpuSet((cpu,))
        known = {
            **self._known,
            **{key: self._known.get(key, _Known(CpuSet())) for key in disturbed},
        }
        judged = {
            key: _judged(one, disturbed.get(key, CpuSet()), look.cpus) for key, one in known.items()
        }
        self._known = {key: one for key, one in judged.items() if one.is_named or one.seen}
        named = [(key, one) for key, one in self._known.items() if one.is_named and one.cpus]
        self.found = tuple(
            Disturbance(kind, name, one.cpus) for (kind, name), one in named[:MOST_NAMED]
        )


def _judged(one: _Known, cpus: CpuSet, exclusive: CpuSet) -> _Known:
    """Its CPUs only become more while it is named: each change is a write."""
    seen, missed = (one.seen + 1, 0) if cpus else (0, one.missed + 1)
    is_named = seen >= LOOKS_TO_NAME or (one.is_named and missed < LOOKS_TO_FORGET)
    return _Known((one.cpus | cpus) & exclusive, seen, missed, is_named)


def _tasks(last: Look, look: Look, seconds: float) -> Iterator[tuple[_Key, int]]:
    """The tasks that were on one CPU both times, and used it."""
    known = {(one.id, one.stat.start_ticks): one for one in last.tasks.found}
    for one in look.tasks.found:
        was = known.get((one.id, one.stat.start_ticks))
        if was is None or was.stat.cpu != one.stat.cpu or not one.stat.name:
            continue
        if one.times.ran_seconds - was.times.ran_seconds > TASK_SHARE * seconds:
            is_kernel = one.stat.is_kernel
            name = one.stat.name.partition("/")[0] if is_kernel else one.stat.name
            yield ("KernelThread" if is_kernel else "Task", name), one.stat.cpu


def _came(last: Look, look: Look, seconds: float) -> Iterator[tuple[_Key, int]]:
    for one, cpu, count in increases(last.interrupts, look.interrupts, last.cpus):
        if count > INTERRUPTS_PER_SECOND * seconds:
            yield ("Interrupt", one.name), cpu
