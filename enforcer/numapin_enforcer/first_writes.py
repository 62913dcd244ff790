"""Writes to new cgroups as soon as their events are read, before a pass plans for them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.naming import CgroupNaming, Qos
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.cgroups.tree_cache import CgroupFiles
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import Rules
from numapin_enforcer.plan.new_cgroups import NewCgroupFence, Scope, taken_cpus
from numapin_enforcer.plan.writes.ordered import Held

Known = tuple[Tree, Mapping[str, Desired], Held]


class FirstWrites:
    """Keeps new cgroups off exclusive CPUs. A write that fails is left to the next pass."""

    def __init__(self, files: CgroupFiles, naming: CgroupNaming) -> None:
        self._files, self._naming = files, naming
        self._fence: Callable[[], NewCgroupFence] | None = None

    @property
    def fence(self) -> NewCgroupFence | None:
        """What must be written; None while that is not known, as before the first pass."""
        return self._fence() if self._fence is not None else None

    @property
    def is_armed(self) -> bool:
        """Whether it is known what must be written."""
        return self._fence is not None

    def disarm(self) -> None:
        """Nothing is known any more."""
        self._fence = None

    def arm(self, rules: Rules | None, known: Known, scope: Scope, *, is_complete: bool) -> None:
        """Say what holds from now on: in a pass, when its writes begin, and at its end.

        Args:
            rules: what new cgroups must have; None if they may have all CPUs.
            known: the cgroups as read last, what each of them must have, and what exclusive
                containers had after the last pass.
            scope: what may be fenced if every cgroup has its CPUs, as `is_complete` says.
            is_complete: see `scope`.
        """
        self._fence = None
        if rules is not None:
            build = partial(_build, rules, self._naming, known, scope, is_complete=is_complete)
            self._fence = cache(build)

    def arm_above_pods(self, version: Version, rules: Rules, scope: Scope) -> None:
        """Fence new pods before the first pass, which may take long to read all cgroups.

        For what grants nothing, while what `rules` say is in force: the pods are not known yet.
        """
        found: list[Cgroup] = []
        for path in dict.fromkeys(map(self._naming.qos_path, Qos)):  # the root comes first
            with suppress(CgroupError):
                found.append(self._files.read_one(path))
        if found and found[0].path == self._naming.root:
            tree = tree_of(version, self._naming.root, found)
            fence = NewCgroupFence(rules, self._naming, tree, scope)
            self._fence = lambda: fence

    def fence_new(self, changes: Changes, names: Mapping[str, str]) -> bool:
        """Take exclusive CPUs of others from new cgroups at once.

        On v1 a runtime gives its new cgroup the parent's CPUs, perhaps after it was fenced: then it
        is fenced again.

        Args:
            changes: what happened since the last pass.
            names: container id to name, as the runtime lists them.

        Returns:
            Whether only new cgroups were fenced, so that the pass may wait until runtimes are done.
        """
        fence = self.fence
        if fence is None:
            return False
        again = [fence.written[path] for path in changes.written if path in fence.written]
        writes = [write for write in again if self._has_come_back(write)]
        writes += self._allowed(fence, fence.writes(changes.appeared, names))
        made = [self._is_made(write) for write in writes]
        if not changes.appeared or changes.vanished or changes.overflowed or not all(made):
            return False
        return fence.written.keys() >= {*changes.appeared, *changes.written}

    def fence_pods(self, paths: Iterable[str]) -> list[Write]:
        """The same for pods alone, which appeared or whose set was written; returns what was made.

        A pod that has a container already is left to the pass: its change is external then, and is
        counted.
        """
        paths = tuple(paths)
        fence = self.fence if paths else None
        if fence is None:
            return []
        again = (fence.write_again(path) for path in paths)
        writes = [one for one in again if one is not None and self._has_come_back(one)]
        writes += fence.writes(paths, {})
        return [one for one in self._allowed(fence, writes) if self._is_made(one)]

    def _allowed(self, fence: NewCgroupFence, writes: Iterable[Write]) -> Iterator[Write]:
        for write in writes:
            if not fence.scope.as_created:
                yield write
                continue
            with suppress(CgroupError):
                if fence.is_as_created(self._files.read_one(write.path)):
                    yield write

    def _has_come_back(self, write: Write) -> bool:
        with suppress(CgroupError):
            found = self._files.read_effective_cpus(write.path)
            return isinstance(write.leaves, CpuSet) and not found.isdisjoint(write.leaves)
        return False

    def _is_made(self, write: Write) -> bool:
        with suppress(CgroupError):
            self._files.write(write)
            return True
        return False


def _build(
    rules: Rules, naming: CgroupNaming, known: Known, scope: Scope, *, is_complete: bool
) -> NewCgroupFence:
    """The fence by what a pass knows; most passes need none."""
    tree, desired, held = known
    if not is_complete:
        before = ((naming.parse(path).pod_uid, cpus) for path, cpus in held.items())
        taken = (*taken_cpus(tree, desired, naming), *before)
        scope = replace(scope, pods_only=True, taken=taken)
    return NewCgroupFence(rules, naming, tree, scope)
