"""Where the memory of a cgroup is, and how much is free on NUMA nodes. Does no I/O."""

import re
from collections.abc import Mapping
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import MemSet
from numapin_enforcer.cgroups.errors import CgroupError

_ON_NODE: Final = re.compile(r"\bN(\d{1,4})=(\d{1,18})", re.ASCII)
_FREE: Final = re.compile(r"\b(?:MemFree|Inactive\(file\)):\s*(\d{1,15}) kB", re.ASCII)
_V1_LINE: Final = "hierarchical_total="
_V2_LINES: Final = ("anon ", "file ")

NodeBytes = Mapping[int, int]
"""Bytes on each NUMA node."""


def parse_numa_stat(text: str, page_bytes: int) -> NodeBytes:
    """User memory of a cgroup and its descendants, from its `memory.numa_stat`.

    v1 counts pages, v2 bytes. Source: Documentation/admin-guide/cgroup-v1/memory.rst, 5.6, and
    cgroup-v2.rst, "memory.numa_stat".
    """
    found: dict[int, int] = {}
    for line in text.splitlines():
        unit = page_bytes if line.startswith(_V1_LINE) else 1
        if unit == page_bytes or line.startswith(_V2_LINES):
            for node, count in _ON_NODE.findall(line):
                found[int(node)] = found.get(int(node), 0) + int(count) * unit
    return found


def parse_free(meminfo: str) -> int:
    """The bytes of one NUMA node that are free or hold files nobody uses, from its `meminfo`."""
    return 1024 * sum(map(int, _FREE.findall(meminfo)))


class MemoryNotBoundError(CgroupError):
    """A cgroup is not bound to its NUMA nodes; `why` says why, with numbers, and what to do."""

    reason = Reason.MEMORY_NOT_BOUND

    def __init__(self, path: str, mems: MemSet, why: str) -> None:
        super().__init__(f"{path}/cpuset.mems", str(mems), 0, f"not done: {why}")
        self.mems, self.why = mems, why


def check_move(
    path: str, mems: MemSet, use: NodeBytes, free: NodeBytes, most_moved_bytes: float
) -> None:
    """Make sure that the memory of a cgroup fits on `mems`, and is not too much to move.

    What does not fit makes the kernel kill processes of the cgroup and of others there, while other
    nodes have free memory. A move cannot be stopped or divided, and can stop the whole node.

    Args:
        path: the cgroup.
        mems: what it is to be bound to.
        use: its own memory; none if there is no memory controller.
        free: of each NUMA node; of a node that is missing nothing is known, and nothing is refused.
        most_moved_bytes: how much memory may be moved in one write.

    Raises:
        MemoryNotBoundError: it does not fit, or is too much.
    """
    elsewhere_bytes = sum(count for node, count in use.items() if node not in mems)
    known = all(node in free for node in mems)
    there_bytes = sum(free.get(node, 0) for node in mems)
    has = f"it has {elsewhere_bytes >> 20} MiB on other NUMA nodes"
    if known and elsewhere_bytes > there_bytes:
        free_there = f"only {there_bytes >> 20} MiB are free there"
        do = "free memory there, or create the pod again"
        raise MemoryNotBoundError(path, mems, f"{has}, and {free_there}; {do}")
    if elsewhere_bytes > most_moved_bytes:
        most_mib = f"{most_moved_bytes / (1 << 20):.0f} MiB"
        why = f"at most {most_mib} are moved at once (--most-moved-memory); create the pod again"
        raise MemoryNotBoundError(path, mems, f"{has}, and {why}")
