"""Pure: how soon after a pass the next may come, so that no storm of events eats a CPU."""

from dataclasses import dataclass
from typing import Final

SHARE: Final = 0.25
"""The part of one CPU that passes may take for long."""

BURST_SECONDS: Final = 0.5
"""CPU time that passes may take at once, after as good as nothing for a while."""


@dataclass(slots=True)
class Pace:
    """Passes come at once while there is credit, and in a lasting storm at a distance.

    Whoever may write cgroups can make events as fast as he likes, and the loop runs before others.
    """

    _credit_seconds: float = BURST_SECONDS
    _seen_at: float | None = None

    def rest_seconds(self, spent_seconds: float, now_seconds: float) -> float:
        """How long to rest after a pass.

        Args:
            spent_seconds: the CPU time of the pass.
            now_seconds: the time on any clock that only goes forward.
        """
        if self._seen_at is not None:
            earned = (now_seconds - self._seen_at) * SHARE
            self._credit_seconds = min(BURST_SECONDS, self._credit_seconds + earned)
        self._seen_at = now_seconds
        self._credit_seconds -= spent_seconds
        return max(0.0, -self._credit_seconds / SHARE)
