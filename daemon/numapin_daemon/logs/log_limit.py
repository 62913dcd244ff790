"""Which lines are logged of those that others can cause without end."""

from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket

REMEMBERED_SUBJECTS: Final = 10_000
LINES_AT_ONCE: Final = 100
LINES_PER_SECOND: Final = 1.0
"""Lines of one kind about all subjects together."""

LEFT_OUT: Final = "left_out"
"""The field that says how many lines of the kind were left out since the last one."""


@dataclass(slots=True)
class LogLimit:
    """A limit on the lines of one kind: for each subject, and for all together.

    Whoever may change their own objects can repeat what a line tells, and do so from many objects.

    Attributes:
        at_once: lines about one subject.
        per_second: lines about one subject after those, in the long run; 0 for no more.
        in_all_at_once: lines about all subjects.
        in_all_per_second: lines about all subjects after those, in the long run.
        clock: the machine's clock by default.
    """

    _: KW_ONLY
    at_once: int = 1
    per_second: float = 0.0
    in_all_at_once: int = LINES_AT_ONCE
    in_all_per_second: float = LINES_PER_SECOND
    clock: Clock = field(default_factory=SystemClock)
    _in_all: TokenBucket = field(init=False)
    _of: dict[int, TokenBucket] = field(default_factory=dict, init=False)
    _left_out: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._in_all = TokenBucket(self.in_all_at_once, self.in_all_per_second)

    def admit(self, *subject: Hashable) -> Mapping[str, int] | None:
        """Ask before a line about a subject is logged.

        A subject that has not been heard of for long may be forgotten, and is new then.

        Returns:
            None if the line must be left out; else fields that belong to it.
        """
        now, key = self.clock.monotonic(), hash(subject)
        known = self._of.pop(key, None)
        of_subject = known or TokenBucket(self.at_once, self.per_second)
        is_new = of_subject.take(1, now)
        if is_new and not self._in_all.take(1, now):
            self._left_out += 1
            return None  # it is not remembered, so that it is logged when there is room again
        self._of[key] = of_subject
        if len(self._of) > REMEMBERED_SUBJECTS:
            del self._of[next(iter(self._of))]
        if not is_new:
            self._left_out += 1 if self.per_second else 0
            return None
        left_out, self._left_out = self._left_out, 0
        return {LEFT_OUT: left_out} if left_out else {}

    def __len__(self) -> int:
        """How many subjects are remembered."""
        return len(self._of)
