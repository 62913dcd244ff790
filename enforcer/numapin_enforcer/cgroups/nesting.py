"""How many cgroups inside containers are read: a pod may make any number of them. Does no I/O."""

from collections import Counter
from typing import Final

from numapin_enforcer.cgroups.naming import CgroupNaming, Kind

MOST_DEPTH: Final = 32
"""Cgroups deeper below kubepods are not read. A kubelet inside a container needs about ten."""

MOST_NESTED: Final = 500
"""How many cgroups inside the containers of one pod are read. Each takes some 3 KiB of memory."""


class NestingLimits:
    """Counts the cgroups inside containers by pod.

    What is not read has at most what its parent has: the kernel holds that for every child.
    """

    def __init__(self, naming: CgroupNaming | None) -> None:
        """Args: without `naming` nothing is known to be inside a container, and all is allowed."""
        self._naming = naming
        self._counts: Counter[str] = Counter()

    def refusal(self, path: str) -> str:
        """Why a cgroup must not be read; empty if it may. Its parent was not refused."""
        if self._naming is None:
            return ""
        if path.count("/") - self._naming.root.count("/") > MOST_DEPTH:
            return f"more than {MOST_DEPTH} levels deep"
        if self.is_nested(path) and self._counts[self.pod_uid(path)] >= MOST_NESTED:
            return f"more than {MOST_NESTED} cgroups inside the containers of one pod"
        return ""

    def add(self, path: str) -> None:
        """A cgroup that was not refused is read from now on."""
        if self.is_nested(path):
            self._counts[self.pod_uid(path)] += 1

    def remove(self, path: str) -> None:
        """An added cgroup is gone."""
        if self.is_nested(path):
            self._counts -= Counter((self.pod_uid(path),))

    def most_children(self, path: str) -> int | None:
        """How many children of a cgroup must be listed at most; None for all.

        Only the kubelet makes children of the upper two levels, where the pods are.
        """
        root = self._naming.root if self._naming is not None else ""
        is_above_pods = path.count("/") <= root.count("/") + 1
        return None if self._naming is None or is_above_pods else MOST_NESTED + 1

    def is_nested(self, path: str) -> bool:
        """Whether a cgroup of the tree is inside a container."""
        return self._naming is not None and self._naming.parse(path).kind is Kind.NESTED

    def pod_uid(self, path: str) -> str:
        """The pod that a cgroup of the tree belongs to; empty if it belongs to none."""
        return self._naming.parse(path).pod_uid if self._naming is not None else ""
