"""Adds up counters of things that come and go. Does no I/O."""

from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

MOST_DEBT_SECONDS: Final = 0.05
"""How far a difference of two counters may go below 0 and still be set off against what follows.

The two are not read at the same moment, and on cgroup v2 one of them counts in ticks.
"""


class Increases(Generic[K]):
    """The increases of many counters, each from 0 on when it appears.

    What a counter had at the first call is left out: it counted before this process did.
    """

    def __init__(self) -> None:
        self._last: Mapping[K, float] | None = None

    def since_last(self, now: Mapping[K, float]) -> dict[K, float]:
        """By how much each counter has increased since the last call."""
        last, self._last = self._last, now
        if last is None:
            return {}
        return {key: _increase(last.get(key, 0.0), value) for key, value in now.items()}


def _increase(before: float, now: float) -> float:
    """A counter that is lower than before is another one, of a thread with a used number."""
    return now - before if now >= before else now


class Excess:
    """By how much one counter grows beyond another one; never less than nothing."""

    def __init__(self, most_debt: float = MOST_DEBT_SECONDS) -> None:
        self._last: tuple[float, float] | None = None
        self._debt, self._most_debt = 0.0, most_debt

    def since_last(self, whole: float, part: float) -> float:
        """The increase of `whole` less that of `part` since the last call."""
        last, self._last = self._last, (whole, part)
        if last is None:
            return 0.0
        excess = self._debt + (whole - last[0]) - (part - last[1])
        self._debt = max(min(excess, 0.0), -self._most_debt)
        return max(excess, 0.0)
