"""The cgroups of a tree looked up by the CPUs that they have. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import Cgroup, Tree, differing
from numapin_enforcer.plan.containment import Desired


class CpuIndex:
    """Kept from tree to tree, since few cgroups change: most differ from nothing that is asked.

    All answers have parents before children.

    Attributes:
        tree: the cgroups as read last.
        wanted: what each of them must have.
    """

    def __init__(self, tree: Tree, wanted: Mapping[str, Desired]) -> None:
        self.tree, self.wanted = tree, wanted
        self._by_cpus: dict[int, dict[str, None]] = {}
        self._withheld: set[str] = set()
        self._assigned: set[str] = set()
        self._add(tree.cgroups)

    def update(self, tree: Tree, wanted: Mapping[str, Desired]) -> None:
        """Take over a newer tree, and what its cgroups must have."""
        before, had = self.tree.cgroups, self.wanted
        changed = {*differing(tree.cgroups, before), *differing(wanted, had)}
        if tree.parents is not self.tree.parents:
            self._remove(before.keys() - tree.cgroups.keys(), before)
        self._remove(changed & before.keys(), before)
        self.tree, self.wanted = tree, wanted
        self._add(changed & tree.cgroups.keys())

    def having(self, cpus: CpuSet) -> list[Cgroup]:
        """The cgroups that have any of `cpus`."""
        groups = (paths for mask, paths in self._by_cpus.items() if mask & cpus.mask)
        return self._ordered(path for paths in groups for path in paths)

    def groups(self) -> Iterator[tuple[int, Iterator[str]]]:
        """Each set of CPUs that a cgroup has, as a bit mask, and its cgroups, newest first."""
        for mask, paths in self._by_cpus.items():
            yield mask, reversed(paths)

    def withheld(self) -> list[Cgroup]:
        """The cgroups that have other CPUs than they must have."""
        return self._ordered(self._withheld)

    def assigned(self) -> list[Cgroup]:
        """The cgroups of containers of the spec, and those inside them."""
        return self._ordered(self._assigned)

    def _add(self, paths: Iterable[str]) -> None:
        for path in paths:
            cpus, want = self.tree.cgroups[path].effective_cpus, self.wanted[path]
            self._by_cpus.setdefault(cpus.mask, {})[path] = None
            if cpus != want.cpus:
                self._withheld.add(path)
            if want.container is not None:
                self._assigned.add(path)

    def _remove(self, paths: Iterable[str], before: Mapping[str, Cgroup]) -> None:
        for path in paths:
            mask = before[path].effective_cpus.mask
            del self._by_cpus[mask][path]
            if not self._by_cpus[mask]:
                del self._by_cpus[mask]
            self._withheld.discard(path)
            self._assigned.discard(path)

    def _ordered(self, paths: Iterable[str]) -> list[Cgroup]:
        by_depth = sorted(paths, key=lambda path: (path.count("/"), path))
        return [self.tree.cgroups[path] for path in by_depth]
