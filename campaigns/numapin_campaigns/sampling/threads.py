"""Threads that may use more CPUs than their cgroup has, as those of io_uring do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_campaigns.sampling.assignment_versions import ContainerKey
from numapin_campaigns.sampling.cgroup_tree import Leaf, PodsTree
from numapin_campaigns.sampling.samples import Anomaly, AnomalyKind

LOOK_SECONDS: Final = 0.25
"""Between two looks: one thread takes some 30 us."""

PAUSE_SECONDS: Final = 1.0
"""After so long without a look nothing was exclusive meanwhile, and nobody had to look."""

ReadThreads = Callable[[Iterable[int]], Iterable[tuple[str, int]]]

Owner = tuple[ContainerKey, Leaf, int]
"""A container that is reported exclusive and runs, its cgroup, and its CPUs as a bit mask."""


class ThreadLooks:
    """Compares the masks of threads in /proc with the exclusive CPUs of others, now and then."""

    def __init__(self, tree: PodsTree, threads: ReadThreads | None = None) -> None:
        self._tree = tree
        self._threads = threads or read_threads
        self._looked_at = float("-inf")
        self._since: dict[str, float] = {}

    def look(
        self, now: float, owners: Sequence[Owner], sets: Iterable[tuple[Leaf, int]]
    ) -> Iterator[tuple[Anomaly, Leaf]]:
        """What is found, if a look is due.

        Args:
            now: monotonic seconds.
            owners: the exclusive containers.
            sets: each cgroup with its set, read before.
        """
        past_seconds = now - self._looked_at
        if not owners or past_seconds < LOOK_SECONDS:
            return
        if past_seconds > PAUSE_SECONDS:
            self._since = {path: at + past_seconds for path, at in self._since.items()}
        self._looked_at = now
        for leaf, cpus in sets:
            others = [one for one in owners if not leaf.is_within(one[1]) and not one[2] & cpus]
            found = self._first(leaf, others)
            if found is not None:
                yield found, leaf
            elif others:
                self._since.pop(leaf.path, None)
        for path in self._since.keys() - self._tree.leaves.keys():
            del self._since[path]

    def _first(self, leaf: Leaf, owners: Sequence[Owner]) -> Anomaly | None:
        """The first thread of a cgroup that may use a CPU of one of the owners."""
        for name, allowed in self._threads(self._tree.pids(leaf)) if owners else ():
            for key, _, mask in owners:
                if allowed & mask:
                    since = self._since.setdefault(leaf.path, self._looked_at)
                    return Anomaly(
                        self._looked_at, AnomalyKind.THREAD, key, leaf.path, allowed, since, name
                    )
        return None


def read_threads(pids: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Name and mask of each thread of these processes."""
    for pid in pids:
        with suppress(OSError):  # it ended
            for folder in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    yield parse_status((folder / "status").read_text(errors="replace"))


def parse_status(text: str) -> tuple[str, int]:
    """The name and the mask in a status file of /proc. Source: proc_pid_status(5)."""
    fields = dict(line.partition(":\t")[::2] for line in text.splitlines())
    return fields["Name"], int(fields["Cpus_allowed"].replace(",", ""), 16)
