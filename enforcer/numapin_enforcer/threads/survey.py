"""Looks at threads of one cgroup after another, some of them each time. Does no I/O itself."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, Protocol

from numapin_api.cpuset import CpuSet
from numapin_enforcer.threads.findings import WideThreads
from numapin_enforcer.threads.reader import Process, ThreadList

MOST_CGROUPS: Final = 160
"""How many lists of threads one look reads: each takes some 12 us."""

MOST_THREADS: Final = 1600
"""How many threads one look looks at: each takes 1.4 us."""

LISTED_SHARE: Final = 8
"""Reading the id of so many threads takes as long as looking at one."""


class Threads(Protocol):
    """The threads of cgroups; see `ThreadReader`."""

    @property
    def problem(self) -> str:
        """Why masks cannot be read; empty while they can."""
        ...

    def threads(self, path: str) -> ThreadList:
        """The threads in the cgroup itself."""
        ...

    def mask(self, thread: int) -> int | None:
        """The CPUs that a thread may use; None if it has ended."""
        ...

    def name(self, thread: int) -> str:
        """Its name."""
        ...

    def process(self, thread: int) -> Process | None:
        """The process of a thread; None if it has ended."""
        ...


class Look(NamedTuple):
    """What one look found: cgroups without wide threads, and those with some.

    `narrow` are those of `clean` where no thread may use some of the CPUs, with a bit mask of
    those that threads may use.
    """

    clean: tuple[str, ...]
    wide: tuple[WideThreads, ...]
    narrow: Mapping[str, int]


class Survey:
    """Goes round the cgroups; goes on where the last look ended."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._last = ""
        """The cgroup whose turn was last."""
        self._resume: dict[str, int] = {}
        """Cgroups of which only a part was looked at: the last thread of that part."""
        self._used: dict[str, int] = {}
        """The CPUs that threads of that part, and of those before it, may use."""
        self.hidden = False
        """Whether threads were seen that have no id in this PID namespace."""
        self.cut: frozenset[str] = frozenset()
        """The cgroups with so many threads that not all are looked at."""

    def look(self, paths: Sequence[str], own: Callable[[str], int]) -> Look:
        """Look at some cgroups: all of their threads, or a part if there are too many.

        Args:
            paths: the cgroups, sorted.
            own: the CPUs of a cgroup, as a bit mask.
        """
        self._forget_except(set(paths))
        left, clean, wide, narrow = MOST_THREADS, list[str](), list[WideThreads](), dict[str, int]()
        for path in self._turn(paths):
            listed = self._list(path)
            start = bisect_right(listed.ids, self._resume.get(path, 0))
            ids = listed.ids[start:]
            if left < min(len(ids), MOST_THREADS):
                break  # it is the first of the next look
            self._last = path
            left -= len(ids) + len(listed.ids) // LISTED_SHARE
            mask = own(path)
            found, used = self._visit(path, mask, ids)
            if found is not None:
                wide.append(found)
            elif path not in self._resume:
                clean.append(path)
                if 0 != used != mask:
                    narrow[path] = used
        return Look(tuple(clean), tuple(wide), narrow)

    def _forget_except(self, known: AbstractSet[str]) -> None:
        self._resume = {one: last for one, last in self._resume.items() if one in known}
        self._used = {one: mask for one, mask in self._used.items() if one in known}
        self.cut &= known

    def still_wide(self, found: WideThreads, own: int) -> bool:
        """Whether one of these threads may still use CPUs that the cgroup has not."""
        return any((self._threads.mask(one) or 0) & ~own for one in found.ids)

    def _turn(self, paths: Sequence[str]) -> Sequence[str]:
        start = bisect_right(paths, self._last)
        return (*paths[start:], *paths[:start])[:MOST_CGROUPS]

    def _list(self, path: str) -> ThreadList:
        listed = self._threads.threads(path)
        self.hidden = self.hidden or listed.hidden
        self.cut = self.cut | {path} if listed.cut else self.cut - {path}
        return listed

    def _visit(self, path: str, own: int, ids: Sequence[int]) -> tuple[WideThreads | None, int]:
        """The wide ones of the first of these threads, and the CPUs of all looked at so far."""
        self._resume.pop(path, None)
        is_part = len(ids) > MOST_THREADS
        ids = ids[:MOST_THREADS]
        masks = [self._threads.mask(one) or 0 for one in ids]
        used = self._used.pop(path, 0)
        for mask in set(masks):
            used |= mask
        if is_part:
            self._resume[path], self._used[path] = ids[-1], used
        if not used & ~own:
            return None, used
        found = [one for one, mask in zip(ids, masks, strict=True) if mask & ~own]
        return (self._confirmed(path, own, found) if found else None), used

    def _confirmed(self, path: str, own: int, found: Sequence[int]) -> WideThreads | None:
        """Those that are in the cgroup still: a thread may move, and its id go to another one."""
        listed, beyond, ids = set(self._threads.threads(path).ids), 0, list[int]()
        for one in found:
            mask = (self._threads.mask(one) or 0) & ~own if one in listed else 0
            if mask:
                beyond |= mask
                ids.append(one)
        if not ids:
            return None
        return WideThreads(path, CpuSet.from_mask(beyond), self._threads.name(ids[0]), tuple(ids))
