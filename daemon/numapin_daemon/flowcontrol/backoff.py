"""How long to wait before a retry."""

import math
import random
from dataclasses import dataclass, field


@dataclass
class Backoff:
    """Exponential back-off, by default with full jitter, so that many clients do not retry at once.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, "full jitter".

    Attributes:
        base_seconds: upper bound of the first wait; it doubles with each failure.
        cap_seconds: upper bound of all waits.
        jitter: the source of the jitter.
        failures: how many in a row.
        spread: what part of its upper bound a wait may be shorter: 1 is full jitter, 0 none.
    """

    base_seconds: float = 0.5
    cap_seconds: float = 30.0
    jitter: random.Random = field(default_factory=random.Random)
    failures: int = 0
    spread: float = 1.0

    def next_seconds(
        self, retry_after_seconds: float | None = None, most_seconds: float = math.inf
    ) -> float:
        """Count a failure; return how long to wait.

        Args:
            retry_after_seconds: how long the server asked to wait, at least; None if it did not.
            most_seconds: an upper bound for this wait alone, besides what the server asked for.
        """
        bound = min(self.cap_seconds, self.base_seconds * 2.0 ** min(self.failures, 30))
        bound = min(bound, most_seconds)
        self.failures += 1
        return (retry_after_seconds or 0.0) + self.jitter.uniform((1 - self.spread) * bound, bound)

    def reset(self) -> None:
        """Forget the failures after a success."""
        self.failures = 0
