"""How many cgroups inside containers are read: a pod may make any number of them. Does no I/O."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind

MOST_DEPTH: Final = 32
"""Cgroups deeper below kubepods are not read. A kubelet inside a container needs about ten."""

MOST_NESTED: Final = 500
"""How many cgroups inside the containers of one pod are read. Each takes some 3 KiB of memory."""

MOST_NESTED_ON_NODE: Final = 2000
"""How many of them are read on one node: 7 MiB, and a tenth of a second of each full read."""


class NestingLimits:
    """Counts the cgroups inside containers, by pod and in all.

    What is not read has at most what its parent has: the kernel holds that for every child.
    """

    def __init__(self, naming: CgroupNaming | None) -> None:
        """Args: without `naming` nothing is known to be inside a container, and all is allowed."""
        self._naming = naming
        self._counts: Counter[str] = Counter()
        self._total = 0

    def refusal(self, path: str) -> str:
        """Why a cgroup must not be read; empty if it may. Its parent was not refused."""
        if self._naming is None:
            return ""
        if path.count("/") - self._naming.root.count("/") > MOST_DEPTH:
            return f"more than {MOST_DEPTH} levels deep"
        return self.shortage(path)

    def shortage(self, path: str) -> str:
        """Why no more cgroups of its kind and pod may be read; empty if they may."""
        if not self.is_nested(path):
            return ""
        if self._counts[self.pod_uid(path)] >= MOST_NESTED:
            return f"more than {MOST_NESTED} cgroups inside the containers of one pod"
        if self._total >= MOST_NESTED_ON_NODE:
            return f"more than {MOST_NESTED_ON_NODE} cgroups inside the containers of this node"
        return ""

    def add(self, path: str) -> None:
        """A cgroup that was not refused is read from now on."""
        if self.is_nested(path):
            self._counts[self.pod_uid(path)] += 1
            self._total += 1

    def remove(self, path: str) -> None:
        """An added cgroup is gone."""
        if self.is_nested(path):
            self._counts -= Counter((self.pod_uid(path),))
            self._total -= 1

    def most_children(self, path: str) -> int | None:
        """How many children of a cgroup must be listed at most; None for all.

        One more than may be read, to find that there are more. Only the kubelet makes children of
        the upper two levels, where the pods are.
        """
        root = self._naming.root if self._naming is not None else ""
        is_above_pods = path.count("/") <= root.count("/") + 1
        if self._naming is None or is_above_pods:
            return None
        return MOST_NESTED + 1 - self._counts[self.pod_uid(path)]

    def is_nested(self, path: str) -> bool:
        """Whether a cgroup of the tree is inside a container."""
        return self._naming is not None and self._naming.parse(path).kind is Kind.NESTED

    def pod_uid(self, path: str) -> str:
        """The pod that a cgroup of the tree belongs to; empty if it belongs to none."""
        return self._naming.parse(path).pod_uid if self._naming is not None else ""


class _Family(NamedTuple):
    """A cgroup that was read, and the names of its children that wait, the next one last."""

    path: str
    names: list[str]


class ReadOrder:
    """Which cgroup a full read takes next: parents first, and a turn for each pod.

    First come all that the kubelet and runtimes have made. Of those inside containers each pod has
    one read in its turn, so at the node's limit no pod has a smaller part than another one has.
    """

    def __init__(self, limits: NestingLimits, root: str) -> None:
        self._limits = limits
        self._first = deque((root,))
        self._nested: dict[str, deque[_Family]] = {}
        """The children inside containers by pod; all pods are in the order of their turns."""

    def add(self, path: str, names: Sequence[str]) -> None:
        """Take the children of a cgroup that was read."""
        if names and self._limits.is_nested(f"{path}/{names[0]}"):
            # Names take a third of the memory that paths would: there may be 500 in each pod.
            family = _Family(path, list(reversed(names)))
            self._nested.setdefault(self._limits.pod_uid(path), deque()).append(family)
        else:
            self._first.extend(f"{path}/{name}" for name in names)

    def next(self) -> str | None:
        """The next cgroup; None at the end."""
        if self._first:
            return self._first.popleft()
        if not self._nested:
            return None
        uid = next(iter(self._nested))
        families = self._nested.pop(uid)
        path = f"{families[0].path}/{families[0].names.pop()}"
        if not families[0].names:
            families.popleft()
        if families:
            self._nested[uid] = families  # behind the other pods
        return path

    def drop(self, path: str) -> None:
        """Forget what waits of the pod of a cgroup."""
        self._nested.pop(self._limits.pod_uid(path), None)

    def most_children(self, path: str) -> int | None:
        """As that of the limits; so many wait for each pod at most."""
        most, uid = self._limits.most_children(path), self._limits.pod_uid(path)
        waiting = sum(len(one.names) for one in self._nested.get(uid, ()))
        return None if most is None else max(0, most - waiting)
