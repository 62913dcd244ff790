"""Brings the files of partitions to what is wanted, reads back, and remembers what was refused."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.partitions.files import PartitionFiles, make, read_states
from numapin_enforcer.partitions.plan import (
    MEMBER,
    UNTOUCHED,
    State,
    ancestors,
    plan_partitions,
)
from numapin_enforcer.partitions.saved import FoundPartitions

FIRST_PAUSE_SECONDS: Final = 1.0
MOST_PAUSE_SECONDS: Final = 600.0
"""How long a partition that the kernel refuses is left alone: each time twice as long."""

NOT_PERMITTED: Final = "Enable partition not permitted"
"""Source: Linux, kernel/cgroup/cpuset.c, `perr_strings`, `PERR_ACCESS`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that could not be made: what was wanted, why not, and when to try again."""

    wanted: State
    why: str
    tries: int
    again_seconds: float


@dataclass(eq=False)
class Partitioning:
    """The partitions of one tree of cgroups.

    Attributes:
        files: the kernel's.
        found: what cgroups had before, on disk.
        clock: the time.
        ours: the cgroups whose files may have something of ours.
        made: the partitions that the kernel says are valid.
        refused: those that it does not make.
    """

    files: PartitionFiles
    found: FoundPartitions
    clock: Clock
    ours: frozenset[str] = frozenset()
    made: Mapping[str, State] = field(default_factory=dict)
    refused: Mapping[str, Refusal] = field(default_factory=dict)

    def adopt(self, paths: Iterable[str]) -> None:
        """Take over what an earlier process has left in `paths`, if the disk says that it did.

        Raises:
            CgroupError: a file could not be read.
        """
        if self.found.states:
            self._forget(read_states(self.files, sorted({*paths, *ancestors(paths)})))

    def bring(self, wanted: Mapping[str, State]) -> tuple[bool, frozenset[str]]:
        """Make just these partitions. What the kernel calls invalid is made a member again.

        Returns:
            Whether anything was written, and which partitions others had changed.

        Raises:
            CgroupError: a file could not be read.
            OSError: what others had set could not be saved; then nothing was written.
        """
        due = {path: one for path, one in wanted.items() if self._is_due(path, one)}
        states = self._read(due)
        changed = frozenset(
            path
            for path, one in self.made.items()
            if wanted.get(path) == one and states.get(path, one) != one
        )
        why = _blocked(states, due)
        due = {path: one for path, one in due.items() if path not in why}
        written = self._write(states, due)
        states = self._read(due) if written else states
        why |= {
            path: text
            for path in due
            if path in states and (text := self._why(path, states, written))
        }
        valid = {path: one for path, one in due.items() if path in states and path not in why}
        if len(valid) != len(due):
            written |= self._write(states, valid)
            states = self._read(valid)
        self._note(wanted, why)
        self.made = valid
        self._forget(states)
        return bool(written), changed

    def _is_due(self, path: str, one: State) -> bool:
        before = self.refused.get(path)
        is_same = before is not None and before.wanted == one
        return not is_same or before is None or before.again_seconds <= self.clock.monotonic()

    def _read(self, wanted: Collection[str]) -> dict[str, State]:
        return read_states(self.files, sorted({*self.ours, *wanted, *ancestors(wanted)}))

    def _write(self, states: Mapping[str, State], wanted: Mapping[str, State]) -> dict[str, str]:
        """Save what others had set, and write; returns each cgroup written, with its refusal."""
        theirs = {
            path: one
            for path, one in states.items()
            if path not in self.ours and (one not in (UNTOUCHED, wanted.get(path)) or _is_top(path))
        }
        writes = plan_partitions(states, wanted, {**theirs, **self.found.states})
        if not writes:
            return {}
        self.found.keep({**theirs, **self.found.states})
        self.ours |= {write.path for write in writes}
        refused = make(self.files, writes)
        return {
            write.path: str(refused[write.path]) if write.path in refused else ""
            for write in writes
        }

    def _why(self, path: str, states: Mapping[str, State], written: Mapping[str, str]) -> str:
        """Why a cgroup is no valid partition; empty if it is."""
        partition = states[path].partition
        if "invalid" not in partition and partition != MEMBER:
            return ""
        refusals = (written.get(each, "") for each in (path, *sorted(ancestors([path]))))
        return next(filter(None, refusals), partition)

    def _note(self, wanted: Mapping[str, State], why: Mapping[str, str]) -> None:
        now_seconds = self.clock.monotonic()
        refused = {
            path: one for path, one in self.refused.items() if wanted.get(path) == one.wanted
        }
        for path in wanted:
            if path in why:
                tries = refused[path].tries + 1 if path in refused else 1
                pause_seconds = min(FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1), MOST_PAUSE_SECONDS)
                again_seconds = now_seconds + pause_seconds
                refused[path] = Refusal(wanted[path], why[path], tries, again_seconds)
            elif path in refused and refused[path].again_seconds <= now_seconds:
                del refused[path]
        self.refused = refused

    def _forget(self, states: Mapping[str, State]) -> None:
        """Forget cgroups that are gone, and those that have again what they had before."""
        kept = self.found.states
        self.ours = frozenset(
            path for path, one in states.items() if one != kept.get(path, UNTOUCHED)
        )
        is_left = bool(self.ours)
        self.found.keep(
            {
                path: one
                for path, one in kept.items()
                if path in self.ours or (is_left and _is_top(path))
            }
        )


def _is_top(path: str) -> bool:
    """Whether a cgroup passes CPUs to all that is ours: its entry says that there is something."""
    return not parent(path)


def end_all(files: PartitionFiles, paths: Iterable[str], found: FoundPartitions) -> list[str]:
    """End all that was left in `paths`, and restore what was found; returns what is left.

    Raises:
        CgroupError: a file could not be read.
    """
    work = Partitioning(files, found, SystemClock())
    work.adopt(paths)
    if not work.ours:
        return []
    try:
        work.bring({})
    except OSError as error:
        return [f"what others had set of partitions could not be forgotten: {error}"]
    return [f"{path} is still part of a partition" for path in sorted(work.ours)]


def _blocked(states: Mapping[str, State], wanted: Iterable[str]) -> dict[str, str]:
    """Those of `wanted` that are below a partition: there the kernel makes none like ours."""
    found: dict[str, str] = {}
    for path in wanted:
        for above in sorted(ancestors([path])):
            if above in states and states[above].partition != MEMBER:
                found[path] = f"{above} is a partition of somebody else: {states[above].partition}"
                break
    return found


def message_of(refusal: Refusal) -> str:
    """Why a container is no partition, and what to do where that is known."""
    if NOT_PERMITTED in refusal.why:
        return f"{refusal.why}: the enforcer needs CAP_SYS_ADMIN (the component partitions)"
    return refusal.why
