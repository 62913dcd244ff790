"""Which cgroups' threads have the CPU affinity of the container runtime. Does no I/O itself.

Since Linux 6.2 a thread keeps the affinity that it had before it entered a cpuset, as far as the
cpuset has these CPUs. A container's first process has that of the runtime, such as `CPUAffinity=`
of its systemd unit, unless the runtime resets it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree, parent
from numapin_enforcer.threads.findings import InheritedMask
from numapin_enforcer.threads.survey import Look, Threads

MOST_EXAMINED: Final = 32
"""Of how many cgroups the runtime is searched in one look. Each is examined once, unless its CPUs
or those of its threads change."""

MOST_PARENTS: Final = 16
"""How many processes may be between a thread and its runtime; each takes some 30 us."""

SANDBOX: Final = "pause"
"""The name of the only thread of a pod's sandbox, which never chooses its CPUs itself."""


@dataclass(slots=True)
class _Examined:
    """A cgroup of which threads may not use all CPUs; `mask` is None if they chose that.

    `is_certain` once it was found in two looks: a program, and a runtime that is starting one, may
    choose other CPUs in the first moment.
    """

    own: int
    used: int
    mask: InheritedMask | None
    is_certain: bool = False


class InheritedMasks:
    """Examines cgroups that `Survey` found narrow.

    The threads of a cgroup have the affinity of the runtime if its first process may use just the
    CPUs that the runtime's own affinity leaves of it, and no other thread of it may use more. A
    program that chooses just these counts as well, unless the sandbox of its pod shows that the
    runtime resets the affinity.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._examined: dict[str, _Examined] = {}

    @property
    def found(self) -> tuple[InheritedMask, ...]:
        """The cgroups whose threads have it, the one that was found first first."""
        examined = self._examined.values()
        return tuple(one.mask for one in examined if one.mask is not None and one.is_certain)

    def forget(self) -> None:
        """Nothing is enforced now."""
        self._examined.clear()

    def update(self, look: Look, tree: Tree, naming: CgroupNaming) -> None:
        """Examine what one look has found."""
        for path in self._examined.keys() - tree.cgroups.keys():
            del self._examined[path]
        if self._examined:
            self._forget_wider({*look.clean, *(one.path for one in look.wide)}, look, tree)
        left = MOST_EXAMINED
        for path, used in look.narrow.items():
            own, known = _own(tree, path), self._examined.get(path)
            if known is not None and (known.own, known.used) == (own, used):
                known.is_certain = True
            elif left:
                left -= 1
                mask = self._examine(path, used, tree, naming)
                is_known = mask is not None and known is not None and known.mask == mask
                self._examined[path] = _Examined(own, used, mask, is_certain=is_known)

    def _forget_wider(self, looked: Collection[str], look: Look, tree: Tree) -> None:
        """Forget cgroups whose threads may use all CPUs, unless the affinity allows that."""
        for path in [*self._examined]:
            mask = self._examined[path].mask
            if path not in looked or path in look.narrow:
                continue
            if mask is None or _is_part(mask.cpus.mask, _own(tree, path)):
                del self._examined[path]

    def _examine(
        self, path: str, used: int, tree: Tree, naming: CgroupNaming
    ) -> InheritedMask | None:
        ids, own = self._threads.threads(path).ids, _own(tree, path)
        is_container = bool(naming.parse(path).container_id)  # CRI-O's conmon has a cgroup, too
        found = self._first_and_runtime(ids) if ids and is_container else None
        if found is None:
            return None
        first, runtime = found
        mask = self._threads.mask(runtime) or 0
        if not _is_part(mask, own) or used != own & mask or self._threads.mask(first) != used:
            return None
        if self._is_sandbox(ids) or self._resets(path, mask, tree, naming):
            return None
        return InheritedMask(path, CpuSet.from_mask(mask), self._threads.name(runtime))

    def _first_and_runtime(self, ids: Sequence[int]) -> tuple[int, int] | None:
        """The first process of a cgroup, and the one outside of containers that started it.

        None if they cannot be found. A child that lost its parent is one of the first process, or
        of the runtime.
        """
        one = self._threads.process(ids[0])
        first = one.id if one is not None else 0
        for _ in range(MOST_PARENTS):
            above = self._threads.process(one.parent) if one is not None and one.parent else None
            if above is None:
                return None
            if above.id in ids:
                first = above.id
            elif above.depth == 1:
                return first, above.id
            one = above
        return None

    def _resets(self, path: str, mask: int, tree: Tree, naming: CgroupNaming) -> bool:
        """Whether the sandbox of the same pod may use more than the affinity of the runtime."""
        while naming.parse(path).kind is Kind.NESTED:
            path = parent(path)
        for other in tree.children[parent(path)]:
            own = _own(tree, other)
            if other == path or not _is_part(mask, own):
                continue
            ids = self._threads.threads(other).ids
            if self._is_sandbox(ids) and (self._threads.mask(ids[0]) or 0) & ~mask:
                return True
        return False

    def _is_sandbox(self, ids: Sequence[int]) -> bool:
        return len(ids) == 1 and self._threads.name(ids[0]) == SANDBOX


def _own(tree: Tree, path: str) -> int:
    return tree.cgroups[path].effective_cpus.mask


def _is_part(mask: int, own: int) -> bool:
    """Whether an affinity leaves some of the CPUs of a cgroup, and not all."""
    return 0 != mask & own != own
