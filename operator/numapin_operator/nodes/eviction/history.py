"""How soon a pod may be evicted whose predecessor was evicted for the same cause. Does no I/O."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

FIRST_DELAY_SECONDS: Final = 10.0
LONGEST_DELAY_SECONDS: Final = 600.0

QUIET_SECONDS: Final = 2 * LONGEST_DELAY_SECONDS
"""A cause without an eviction for so long is forgotten."""


class Cause(NamedTuple):
    """Why a pod is evicted. Pods that replace it on the same node have an equal one."""

    owner: str
    """UID of the pod's controller; without one, the pod's namespace and name."""
    node: str
    reason: str


@dataclass(slots=True)
class _Rounds:
    """How often a cause led to evictions, and when the last round of them began."""

    count: int
    begun_at: float


@dataclass(slots=True)
class EvictionHistory:
    """Delays that double with each round of evictions for one cause.

    A controller that replaces an evicted pod often gets the same node again, so the next pod would
    be evicted at once, without end. Pods that were offered before a round began belong to that
    round: they replace none of its pods, and are not delayed. Times are those of one monotonic
    clock.
    """

    _rounds: dict[Cause, _Rounds] = field(default_factory=dict)

    def allowed_at(self, cause: Cause, offered_at: float) -> float:
        """When a pod may be evicted that was offered at that time; may be in the past."""
        rounds = self._rounds.get(cause)
        if rounds is None or offered_at < rounds.begun_at:
            return offered_at
        delay_seconds = FIRST_DELAY_SECONDS * 2.0 ** min(rounds.count - 1, 30)
        return rounds.begun_at + min(delay_seconds, LONGEST_DELAY_SECONDS)

    def evicted(self, cause: Cause, offered_at: float, now: float) -> None:
        """Take in an eviction, and forget the causes that have been quiet."""
        for old, rounds in tuple(self._rounds.items()):
            if now - rounds.begun_at <= QUIET_SECONDS:
                break
            del self._rounds[old]
        before = self._rounds.get(cause)
        if before is not None and offered_at < before.begun_at:
            return
        self._rounds.pop(cause, None)
        self._rounds[cause] = _Rounds(before.count + 1 if before else 1, now)
