"""What operator, enforcer and standby logged."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from numapin_campaigns.frame.downtime import Downtime
from numapin_enforcer.assignment.acceptance import ACCEPTED
from numapin_enforcer.standby import fencing

_LINE: Final = re.compile(r"(\S+) (DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+): (.*)")
_TAKEN: Final = re.compile(rf"{re.escape(ACCEPTED)} generation=(\d+)")
_FENCED: Final = f"{fencing.LOG.name}: {fencing.FENCED} "
TRACE: Final = "Traceback (most recent call last)"
AFTERMATH_SECONDS: Final = 60.0
"""For so long after an API server is back, errors may still be due to its absence."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `at` in monotonic seconds, that of the previous line if it has no time stamp."""

    at: float
    level: str
    text: str


class LogLines(Protocol):
    """What one part logs."""

    def lines(self) -> Iterator[Line]:
        """Every line since this was made."""


class Log:
    """A log file, from its present end on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size

    def lines(self) -> Iterator[Line]:
        """Every line written since then."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._start)
            yield from parse(file)


def parse(texts: Iterable[str]) -> Iterator[Line]:
    """Lines of text, each with its time and level."""
    clock = time.time() - time.monotonic()
    at = 0.0
    for text in texts:
        found = _LINE.match(text)
        if found:
            at = datetime.fromisoformat(found[1]).timestamp() - clock
        level = found[2] if found else ("ERROR" if TRACE in text else "")
        yield Line(at, level, text.rstrip("\n"))


def taken(lines: Iterable[Line]) -> list[tuple[float, int]]:
    """When the enforcer took which generation; the time is truncated to milliseconds."""
    return [(line.at, int(found[1])) for line in lines if (found := _TAKEN.search(line.text))]


def fenced(lines: Iterable[Line]) -> int:
    """How many cgroups the standby fenced."""
    return sum(_FENCED in line.text for line in lines)


def hangs_noticed(lines: Iterable[Line]) -> list[float]:
    """When the standby logged that the enforcer hangs; monotonic seconds, in order."""
    return [line.at for line in lines if fencing.ENFORCER_HANGS in line.text]


def complaints(lines: Iterable[Line], downtimes: Sequence[Downtime]) -> list[str]:
    """Lines with level ERROR or a traceback, except errors while the API server is down."""
    away = [
        (one.killed_at, one.ready_at + AFTERMATH_SECONDS)
        for one in downtimes
        if one.part == "kube-apiserver"
    ]
    return [
        line.text
        for line in lines
        if line.level in {"ERROR", "CRITICAL"}
        and (TRACE in line.text or not any(start <= line.at <= end for start, end in away))
    ]


def warnings(lines: Iterable[Line]) -> list[tuple[str, int]]:
    """How often each warning was logged, without its fields."""
    texts = (_LINE.match(line.text) for line in lines if line.level == "WARNING")
    found = (f"{one[3]}: {re.split(r' [a-z_]+=', one[4])[0]}" for one in texts if one)
    return Counter(found).most_common()
