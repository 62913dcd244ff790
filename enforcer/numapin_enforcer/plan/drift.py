"""Pure: drift that was repaired, as people read it, and how often they are told."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment

QUIET_SECONDS: Final = 60.0
"""How long nothing more is told of one cgroup after an Event about it."""

BURST: Final = 10
REFILL_SECONDS: Final = 10.0
"""A node tells at most BURST Events at once, and one more each REFILL_SECONDS."""

MOST_REMEMBERED: Final = 256
"""Cgroups of which it is remembered when they were told of; pods come and go."""


class Cause(StrEnum):
    """What was wrong, the worst first."""

    INTRUSION = "Intrusion"
    """Anybody on CPUs that another owns."""
    OWNER_MOVED = "OwnerMoved"
    """An owner elsewhere than on its CPUs, or not on all of them."""
    STRAYED = "Strayed"
    """One who shares elsewhere than on the shared CPUs, or not on all of them."""
    MEMORY = "Memory"
    """The CPUs as they should be, but other NUMA nodes."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One cgroup that somebody else changed and that was set right again.

    `owned` are all CPUs that containers are to own, its own included; `owns` says whether it is to
    own some.
    """

    path: str
    found: tuple[CpuSet, MemSet]
    meant: tuple[CpuSet, MemSet]
    container: ContainerAssignment | None = None
    owned: CpuSet = CpuSet()
    owns: bool = False

    @property
    def cause(self) -> Cause:
        """What was wrong."""
        found, meant = self.found[0], self.meant[0]
        if found == meant:
            return Cause.MEMORY
        if (found - meant) & self.owned:
            return Cause.INTRUSION
        return Cause.OWNER_MOVED if self.owns else Cause.STRAYED

    def __str__(self) -> str:
        parts = (
            f"{name} {found or 'none'} instead of {meant}"
            for name, found, meant in zip(("cpus", "mems"), self.found, self.meant, strict=True)
            if found != meant
        )
        return f"{self.who} had {' and '.join(parts)}; it was set right"

    @property
    def who(self) -> str:
        """The container as people name it, or else the cgroup."""
        if self.container is None:
            return f"cgroup {self.path}"
        one = self.container
        return f"container {one.namespace}/{one.pod}/{one.container}"


@dataclass(slots=True)
class DriftCount:
    """How many drifts a NodeAssignment has seen: what its status told before goes on."""

    _object: str = ""
    _mine: Counter[str] = field(default_factory=Counter)
    _before: Counter[str] = field(default_factory=Counter)
    _all_before: int = 0
    """An API server with an older CRD keeps the count and drops the causes."""

    def add(self, drift: Drift) -> None:
        """One more."""
        self._mine[drift.cause.value] += 1

    def resume(self, body: Mapping[str, Any]) -> None:
        """Go on from what the API server has, ours or an earlier life's; a new object has none.

        `body` is the NodeAssignment, with its uid and status.
        """
        uid = str(body["metadata"].get("uid", ""))
        if self._object and uid != self._object:
            self._mine, self._before, self._all_before = Counter(), Counter(), 0
        self._object = uid
        status = body.get("status") or {}
        told = Counter({str(cause): int(n) for cause, n in status.get("driftCauses", {}).items()})
        self._before |= told - self._mine
        count = int(status.get("driftCount", 0))
        self._all_before = max(self._all_before, count - self._mine.total())

    @property
    def causes(self) -> dict[str, int]:
        """By cause, those that there were."""
        return dict(sorted((self._mine + self._before).items()))

    @property
    def total(self) -> int:
        """All of them."""
        return self._mine.total() + self._all_before


@dataclass(slots=True)
class DriftTeller:
    """Decides which drifts are told: each cgroup's first, then rarely, and never a flood."""

    _told_at: dict[str, float] = field(default_factory=dict)
    _untold: dict[str, int] = field(default_factory=dict)
    _tokens: float = BURST
    _filled_at: float | None = None

    def admit(self, drift: Drift, now_seconds: float) -> str:
        """The note to tell, or nothing; what is kept back is counted in the next one."""
        self._refill(now_seconds)
        if len(self._told_at) + len(self._untold) > MOST_REMEMBERED:
            self._forget(now_seconds)
        last = self._told_at.get(drift.path)
        if (last is not None and now_seconds - last < QUIET_SECONDS) or self._tokens < 1:
            self._untold[drift.path] = self._untold.get(drift.path, 0) + 1
            return ""
        self._tokens -= 1
        self._told_at[drift.path] = now_seconds
        more = self._untold.pop(drift.path, 0)
        return f"{drift}; {more} more times since it was last told" if more else str(drift)

    def _forget(self, now_seconds: float) -> None:
        """Drop what was told long ago, or of cgroups that are gone: both may be told again."""
        recent = {path for path, at in self._told_at.items() if now_seconds - at < QUIET_SECONDS}
        for known in (self._told_at, self._untold):
            for path in known.keys() - recent:
                del known[path]

    def _refill(self, now_seconds: float) -> None:
        if self._filled_at is not None:
            gained = (now_seconds - self._filled_at) / REFILL_SECONDS
            self._tokens = min(BURST, self._tokens + gained)
        self._filled_at = now_seconds
