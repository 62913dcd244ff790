"""External cpuset changes that were reverted: found, described, counted."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cgroups.tree import CgroupVanishedError, Tree, parent
from numapin_enforcer.plan.desired import Desired, owned_cpus


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


class DriftDetector:
    """Finds external changes of cpusets that had been right."""

    def __init__(self, has_tasks: Callable[[str], bool]) -> None:
        """Args: `has_tasks` says whether a process runs in the cgroup itself.

        It may raise `CgroupVanishedError`.
        """
        self._has_tasks = has_tasks
        self._right: dict[str, Desired] = {}

    def detect(self, tree: Tree, desired: Mapping[str, Desired]) -> list[Drift]:
        """Cgroups that were right at the last call, must still be the same, and are not.

        A drift that only follows from a parent's is left out. So is what happens before any process
        runs in a cgroup: the runtime may still be setting it up.
        """
        before, self._right = self._right, {}
        changed: set[str] = set()
        drifts: list[Drift] = []
        owned = owned_cpus(desired.values())
        for path, meant in desired.items():
            cgroup = tree.cgroups[path]
            found = (cgroup.effective_cpus, cgroup.effective_mems)
            sets = (meant.cpus, meant.mems)
            if found == sets:
                self._right[path] = meant
            elif before.get(path) == meant and path != tree.root:
                changed.add(path)
                if parent(path) not in changed and self._inhabited(tree, path):
                    one = Drift(path, found, sets, meant.container, owned, bool(meant.owner))
                    drifts.append(one)
        return drifts

    def forget(self) -> None:
        """Start again: nothing is known to have been right."""
        self._right = {}

    def _inhabited(self, tree: Tree, path: str) -> bool:
        with suppress(CgroupVanishedError):
            if self._has_tasks(path):
                return True
        return any(self._inhabited(tree, child) for child in tree.children.get(path, ()))


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
