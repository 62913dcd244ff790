"""When the next pass is due, for agent and standby. Does no I/O."""

from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.flowcontrol.rate_limit import TokenBucket

CPU_SHARE: Final = 0.25
"""The part of one CPU that passes may take in the long run."""

BURST_SECONDS: Final = 0.5
"""CPU time that passes may take at once after a quiet time."""

READS_PER_SECOND: Final = 100.0
"""How often events may be read, in the long run, while none of them matters.

A new cgroup then waits for 10 ms at most; its first process starts about 12 ms after its creation.
"""

READ_BURST: Final = 100.0
"""How often such events may be read at once after a quiet time."""

MOST_DOUBLINGS: Final = 10
"""How often the wait after failed passes doubles at most."""


def _cpu_time() -> TokenBucket:
    return TokenBucket(BURST_SECONDS, CPU_SHARE)


def _vain_reads() -> TokenBucket:
    return TokenBucket(READ_BURST, READS_PER_SECOND)


@dataclass(slots=True)
class Schedule:
    """Decides how long to wait after a pass, and which passes read the whole tree.

    All times are seconds on one clock that only goes forward.

    Attributes:
        resync_seconds: how often the whole tree is read although no event came.
        retry_seconds: the wait after a failed pass; doubles up to `resync_seconds`.
        failed_passes: how many passes failed in a row, the last one included.
    """

    resync_seconds: float
    retry_seconds: float
    failed_passes: int = field(default=0, init=False)
    _resynced_at: float | None = field(default=None, init=False)
    _cpu_time: TokenBucket = field(default_factory=_cpu_time, init=False)
    _vain_reads: TokenBucket = field(default_factory=_vain_reads, init=False)

    def resync_due(self, now_seconds: float) -> bool:
        """Whether the pass that begins now must read the whole tree."""
        return self._resynced_at is None or now_seconds - self._resynced_at >= self.resync_seconds

    def note_pass(self, began_seconds: float, *, resynced: bool, complete: bool) -> None:
        """A pass that began then has ended; it is `complete` if nothing must be tried again."""
        if resynced:
            self._resynced_at = began_seconds
        self.failed_passes = 0 if complete else self.failed_passes + 1

    def note_unreadable(self) -> None:
        """A pass has ended because the tree could not be read: the next one reads all of it."""
        self._resynced_at = None
        self.failed_passes += 1

    def wait_seconds(self, now_seconds: float) -> float:
        """How long to wait for an event before the next pass."""
        wait = self.resync_seconds
        if self._resynced_at is not None:
            wait = max(0.0, self._resynced_at + self.resync_seconds - now_seconds)
        if self.failed_passes:
            doublings = min(self.failed_passes - 1, MOST_DOUBLINGS)
            wait = min(wait, self.retry_seconds * 2.0**doublings)
        return wait

    def note_work(self, spent_seconds: float, now_seconds: float) -> None:
        """A pass or a read of events has ended: it makes the next rest longer.

        Args:
            spent_seconds: its CPU time.
            now_seconds: when it ended.
        """
        self._cpu_time.spend(spent_seconds, now_seconds)

    def note_vain_read(self, spent_seconds: float, now_seconds: float) -> None:
        """A read of events has ended in which none mattered; see `note_work`."""
        self.note_work(spent_seconds, now_seconds)
        self._vain_reads.spend(1, now_seconds)

    def rest_seconds(self, now_seconds: float) -> float:
        """How long to rest after a pass that has been noted, whatever happens meanwhile.

        Passes follow each other at once while they are few. In a lasting storm of events they come
        at a distance: any writer of cgroups can cause events at will, and the enforcer runs at
        real-time priority.
        """
        return self._cpu_time.missing_seconds(now_seconds)

    def vain_rest_seconds(self, now_seconds: float) -> float:
        """How long to read no events after a read in vain that has been noted.

        In a lasting stream of such events many are read at once, since waking up costs more than
        reading one.
        """
        rest_seconds = self.rest_seconds(now_seconds)
        return max(rest_seconds, self._vain_reads.missing_seconds(now_seconds))
