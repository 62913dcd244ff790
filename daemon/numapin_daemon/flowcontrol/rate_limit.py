"""A limit on how much may be used at once and in the long run. Does no I/O."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """A number of tokens that is refilled at a steady rate; full at the beginning.

    A token is a unit of what is limited, such as an Event or a second of CPU time. Times are
    seconds on any clock that only goes forward.

    Attributes:
        capacity: the largest number of tokens.
        refill_per_second: how many tokens are added each second.
    """

    capacity: float
    refill_per_second: float
    _tokens: float = field(init=False)
    _refilled_at_seconds: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._tokens = self.capacity

    def take(self, tokens: float, now_seconds: float) -> bool:
        """Use tokens if there are enough; return whether there were."""
        self._refill(now_seconds)
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    def spend(self, tokens: float, now_seconds: float) -> float:
        """Use tokens even if there are not enough.

        Returns:
            The seconds until the missing tokens have been added; 0 if none is missing.
        """
        self._refill(now_seconds)
        self._tokens -= tokens
        return self.missing_seconds(now_seconds)

    def missing_seconds(self, now_seconds: float) -> float:
        """The seconds until tokens that are missing have been added; 0 if none is missing."""
        return max(0.0, -self._left(now_seconds) / self.refill_per_second)

    def _left(self, now_seconds: float) -> float:
        """The tokens there are at a time, negative if some are missing."""
        if self._refilled_at_seconds is None:
            return self._tokens
        gained = (now_seconds - self._refilled_at_seconds) * self.refill_per_second
        return min(self.capacity, self._tokens + gained)

    def _refill(self, now_seconds: float) -> None:
        self._tokens, self._refilled_at_seconds = self._left(now_seconds), now_seconds
