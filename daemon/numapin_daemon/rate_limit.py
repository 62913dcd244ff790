"""How much may be spent at once and how much in the long run."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """Tokens that are spent now and then, and come back at a steady rate; full at the beginning.

    A token is whatever is limited: an Event, a second of CPU time. Times are seconds on any clock
    that only goes forward.

    Attributes:
        capacity: the most tokens that can be there.
        refill_per_second: how many come back each second.
    """

    capacity: float
    refill_per_second: float
    _tokens: float = field(init=False)
    _refilled_at_seconds: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._tokens = self.capacity

    def take(self, tokens: float, now_seconds: float) -> bool:
        """Spend so many tokens if they are there; say whether they were."""
        self._refill(now_seconds)
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    def spend(self, tokens: float, now_seconds: float) -> float:
        """Spend tokens that are needed whether they are there or not.

        Returns:
            The seconds until what was spent too much has come back; 0 if nothing was.
        """
        self._refill(now_seconds)
        self._tokens -= tokens
        return max(0.0, -self._tokens / self.refill_per_second)

    def _refill(self, now_seconds: float) -> None:
        if self._refilled_at_seconds is not None:
            gained = (now_seconds - self._refilled_at_seconds) * self.refill_per_second
            self._tokens = min(self.capacity, self._tokens + gained)
        self._refilled_at_seconds = now_seconds
