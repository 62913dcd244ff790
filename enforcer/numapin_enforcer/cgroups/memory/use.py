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


class NotEnoughMemoryError(CgroupError):
    """A container is not bound: what it has elsewhere does not fit on its NUMA nodes.

    The kernel would kill processes of it and of others there, while other nodes have free memory.
    """

    reason = Reason.MEMORY_NOT_BOUND

    def __init__(self, path: str, mems: MemSet, elsewhere_bytes: int, free_bytes: int) -> None:
        self.numbers = (
            f"it has {elsewhere_bytes >> 20} MiB on other NUMA nodes, and only "
            f"{free_bytes >> 20} MiB are free there"
        )
        super().__init__(f"{path}/cpuset.mems", str(mems), 0, f"not done: {self.numbers}")
        self.mems, self.elsewhere_bytes, self.free_bytes = mems, elsewhere_bytes, free_bytes


def check_fits(path: str, mems: MemSet, use: NodeBytes, free: NodeBytes) -> None:
    """Make sure that the memory of a cgroup fits on `mems`.

    Args:
        path: the cgroup.
        mems: what it is to be bound to.
        use: its own memory; none if there is no memory controller.
        free: of each NUMA node; of a node that is missing nothing is known, and nothing is refused.

    Raises:
        NotEnoughMemoryError: it does not fit.
    """
    elsewhere = sum(count for node, count in use.items() if node not in mems)
    known = all(node in free for node in mems)
    there = sum(free.get(node, 0) for node in mems)
    if known and elsewhere > there:
        raise NotEnoughMemoryError(path, mems, elsewhere, there)
