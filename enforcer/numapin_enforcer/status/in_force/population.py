"""Which exclusive containers have processes in their cgroups, and since when one has none.

Does no I/O.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from numapin_enforcer.cgroups.tree import Cgroup, Tree, has_processes
from numapin_enforcer.plan.containment import Desired

STARTING_SECONDS: Final = 3.0
"""How long a cgroup may be without processes before its container counts as deserted.

A runtime makes the cgroup some milliseconds before it puts the first process into it, and removes
it some milliseconds after the last one ended; both take longer on a busy machine.
"""

RECHECK_SECONDS: Final = 0.02
"""How soon to look again: no event says that a process came."""

AGE_SHARE: Final = 0.5
"""Later it is looked for again after this fraction of the time for which there was none."""


class Population:
    """The cgroups of exclusive containers, with or without processes."""

    def __init__(self) -> None:
        self._populated: dict[str, Cgroup] = {}
        self._empty_since: dict[str, float] = {}
        self._candidates: tuple[Tree, Mapping[str, Desired], tuple[str, ...]] | None = None
        self._now_seconds = 0.0

    @property
    def starting(self) -> frozenset[str]:
        """Without processes since a moment ago: they start, or have just ended."""
        return frozenset(self._empty_since) - self.deserted

    @property
    def deserted(self) -> frozenset[str]:
        """Without processes for longer than a start takes."""
        ages = self._ages_seconds().items()
        return frozenset(path for path, age in ages if age >= STARTING_SECONDS)

    def deserted_at(self, seconds: float) -> frozenset[str]:
        """The deserted that counted as such at that time already."""
        return frozenset(path for path, since in self._deserted_since() if since <= seconds)

    @property
    def newest_deserted_at(self) -> float | None:
        """Since when the newest of the deserted counts as such; None if there is none.

        An older list of the runtime's may have a container as running that has ended since.
        """
        return max((since for _, since in self._deserted_since()), default=None)

    @property
    def recheck_seconds(self) -> float | None:
        """How long until `update` must be called again; None if all have processes."""
        if not self._empty_since:
            return None
        return max(RECHECK_SECONDS, AGE_SHARE * min(self._ages_seconds().values()))

    def update(
        self,
        tree: Tree,
        wanted: Mapping[str, Desired],
        has_tasks: Callable[[str], bool],
        now_seconds: float,
        *,
        resynced: bool,
    ) -> None:
        """Look at the cgroups that changed or had no processes; at all of them if `resynced`.

        Args:
            tree: the cgroups as read last.
            wanted: what each of them must have.
            has_tasks: as in `has_processes`.
            now_seconds: the time, on a clock that only goes forward.
            resynced: whether the whole tree was read.
        """
        self._now_seconds = now_seconds
        populated, empty_since = dict[str, Cgroup](), dict[str, float]()
        for path in self._exclusive(tree, wanted):
            one = tree.cgroups[path]
            is_known = not resynced and self._populated.get(path) is one
            if is_known or has_processes(tree, path, has_tasks):
                populated[path] = one
            else:
                empty_since[path] = self._empty_since.get(path, now_seconds)
        self._populated, self._empty_since = populated, empty_since

    def forget(self) -> None:
        """There is no tree now: nothing must be looked at again."""
        self._populated, self._empty_since, self._candidates = {}, {}, None

    def _deserted_since(self) -> Iterator[tuple[str, float]]:
        return ((path, self._empty_since[path] + STARTING_SECONDS) for path in self.deserted)

    def _ages_seconds(self) -> dict[str, float]:
        return {path: self._now_seconds - since for path, since in self._empty_since.items()}

    def _exclusive(self, tree: Tree, wanted: Mapping[str, Desired]) -> tuple[str, ...]:
        """The cgroups of exclusive containers; not those inside them."""
        known = self._candidates
        if known is None or known[0] is not tree or known[1] is not wanted:
            paths = tuple(
                path
                for path, want in wanted.items()
                if want.container is not None
                and want.container.exclusive
                and wanted[tree.parents[path]].container is None
            )
            known = self._candidates = (tree, wanted, paths)
        return known[2]
