"""Where the kernel has the memory of Guaranteed pods that is not bound to NUMA nodes.

The operator promises no memory that these use. Huge pages are not counted here: which of them are
free on each NUMA node is in the topology. Does no I/O.
"""

import resource
from collections.abc import Callable, Collection, Mapping
from typing import Final

from numapin_api.hardware.limits import MAX_BYTES
from numapin_api.schema.plain import UnboundMemory
from numapin_enforcer.cgroups.memory.use import used_by
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree

MOST_PODS: Final = 64
MOST_NODES: Final = 8

LOOK_SECONDS: Final = 60.0
"""How often to read: the kernel adds the counts of all CPUs up for it."""

STEP_BYTES: Final = 64 << 20
STEP_SHARE: Final = 8
"""A change is reported once it is larger than both: each report is a plan of the operator."""


class UnboundMemoryReader:
    """What was read last, and when.

    Attributes:
        found: the pods with most memory, `MOST_PODS` of them, by UID.
    """

    def __init__(self, page_bytes: int | None = None) -> None:
        """Know nothing yet. Args: `page_bytes` is the machine's by default."""
        self._page_bytes = page_bytes or resource.getpagesize()
        self._due_seconds = 0.0
        self._seen: Mapping[str, Mapping[int, int]] = {}
        self.found: tuple[UnboundMemory, ...] = ()

    def look(
        self,
        tree: Tree,
        naming: CgroupNaming,
        bound: Collection[str],
        numa_stat: Callable[[str], str],
        now_seconds: float,
    ) -> None:
        """Read again if it is time to.

        Args:
            tree: the cgroups as read. Pods directly below kubepods are Guaranteed.
            naming: how to read their paths.
            bound: the UIDs of the pods whose memory is bound; they are left out.
            numa_stat: reads the `memory.numa_stat` of a cgroup; empty if there is none.
            now_seconds: the monotonic time.
        """
        if now_seconds < self._due_seconds:
            return
        self._due_seconds = now_seconds + LOOK_SECONDS
        seen: dict[str, Mapping[int, int]] = {}
        for path in tree.children[tree.root]:
            parsed = naming.parse(path)
            if parsed.kind is Kind.POD and parsed.pod_uid not in bound:
                used = self._used(path, numa_stat)
                if sum(used.values()) >= STEP_BYTES:
                    seen[parsed.pod_uid] = _calm(self._seen.get(parsed.pod_uid, {}), used)
        largest = sorted(seen, key=lambda uid: (-sum(seen[uid].values()), uid))[:MOST_PODS]
        self._seen = {uid: seen[uid] for uid in sorted(largest)}
        self.found = tuple(
            UnboundMemory(uid, {str(node): count for node, count in sorted(used.items())})
            for uid, used in self._seen.items()
        )

    def _used(self, path: str, numa_stat: Callable[[str], str]) -> Mapping[int, int]:
        used = used_by(path, numa_stat, self._page_bytes)
        most = sorted(used, key=lambda node: (-used[node], node))[:MOST_NODES]
        return {node: min(used[node], MAX_BYTES) for node in most if used[node]}


def _calm(before: Mapping[int, int], now: Mapping[int, int]) -> Mapping[int, int]:
    """What was reported, unless a NUMA node differs by a step."""
    for node in before.keys() | now.keys():
        old, new = before.get(node, 0), now.get(node, 0)
        if abs(old - new) > max(STEP_BYTES, max(old, new) // STEP_SHARE):
            return now
    return before or now
