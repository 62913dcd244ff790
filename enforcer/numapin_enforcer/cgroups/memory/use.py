"""Where the memory of a cgroup is, and how much is free on NUMA nodes. Does no I/O."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import MemSet
from numapin_enforcer.cgroups.errors import CgroupError

_ON_NODE: Final = re.compile(r"\bN(\d{1,4})=(\d{1,20})", re.ASCII)
_FREE: Final = re.compile(r"\b(?:MemFree|Inactive\(file\)):\s*(\d{1,15}) kB", re.ASCII)
_AVAILABLE: Final = re.compile(
    r"\b(?:MemFree|Active\(file\)|Inactive\(file\)|KReclaimable):\s*(\d{1,15}) kB", re.ASCII
)
_V1_LINE: Final = "hierarchical_total="
_V2_LINES: Final = ("anon ", "file ")
_HUGE: Final = re.compile(r"hugetlb\.(\d{1,6})(KB|MB|GB) .*?total=(\d{1,18})\b", re.ASCII)
_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

NodeBytes = Mapping[int, int]
"""Bytes on each NUMA node."""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Memory on NUMA nodes, used or free. Pages of one size cannot be taken for another.

    Attributes:
        usual: in pages of the usual size.
        huge: in huge pages, by their size in bytes.
    """

    usual: NodeBytes = field(default_factory=dict)
    huge: Mapping[int, NodeBytes] = field(default_factory=dict)

    @property
    def total(self) -> NodeBytes:
        """Bytes on each NUMA node in pages of any size."""
        return _sum((self.usual, *self.huge.values()))


def parse_numa_stat(text: str, page_bytes: int) -> NodeBytes:
    """User memory of a cgroup and its descendants, from its `memory.numa_stat`: no huge pages.

    v1 counts pages, v2 bytes. Source: Documentation/admin-guide/cgroup-v1/memory.rst, 5.6, and
    cgroup-v2.rst, "memory.numa_stat".
    """
    lines = [line for line in text.splitlines() if line.startswith((_V1_LINE, *_V2_LINES))]
    units = (page_bytes if line.startswith(_V1_LINE) else 1 for line in lines)
    return _sum(_on_nodes(line, unit) for line, unit in zip(lines, units, strict=True))


def used_by(path: str, numa_stat: Callable[[str], str], page_bytes: int) -> NodeBytes:
    """User memory of the cgroup at a path; none if it is gone.

    `numa_stat` reads its `memory.numa_stat`, and raises CgroupError.
    """
    try:
        return parse_numa_stat(numa_stat(path), page_bytes)
    except CgroupError:
        return {}


def parse_huge_stat(text: str) -> Mapping[int, NodeBytes]:
    """Bytes in huge pages on each NUMA node, by the size of a page.

    The kernel counts a page where it was allocated, and does not count it elsewhere when it moves
    it; when it is freed its new node goes below zero, that is to 2^64 less. So this is right only
    for a cgroup whose memory was never moved. A size whose counts are not its total is left out.
    Source: mm/hugetlb_cgroup.c, `hugetlb_cgroup_migrate`; seen with Linux 6.1.

    Args:
        text: a line for each size, such as `hugetlb.2MB total=4194304 N0=0 N1=4194304`.
    """
    found: dict[int, NodeBytes] = {}
    for line in text.splitlines():
        if size := _HUGE.match(line):
            nodes = _on_nodes(line, 1)
            if sum(nodes.values()) == int(size[3]):
                found[int(size[1]) * _UNITS[size[2]]] = nodes
    return found


def _on_nodes(line: str, unit_bytes: int) -> NodeBytes:
    return {int(node): int(count) * unit_bytes for node, count in _ON_NODE.findall(line)}


def _sum(every: Iterable[NodeBytes]) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in every:
        for node, count in one.items():
            found[node] = found.get(node, 0) + count
    return found


def parse_free(meminfo: str) -> int:
    """The bytes of one NUMA node that are free or hold files nobody uses, from its `meminfo`."""
    return 1024 * sum(map(int, _FREE.findall(meminfo)))


def parse_available(meminfo: str) -> int:
    """The bytes of one NUMA node that are free or that the kernel could free: it may keep some."""
    return 1024 * sum(map(int, _AVAILABLE.findall(meminfo)))


class MemoryNotBoundError(CgroupError):
    """A cgroup is not bound to its NUMA nodes; `why` says why, with numbers, and what to do."""

    reason = Reason.MEMORY_NOT_BOUND

    def __init__(self, path: str, mems: MemSet, why: str) -> None:
        super().__init__(f"{path}/cpuset.mems", str(mems), 0, f"not done: {why}")
        self.mems, self.why = mems, why


def check_move(
    path: str, mems: MemSet, use: NodeMemory, free: NodeMemory, most_moved_bytes: float
) -> None:
    """Make sure that the memory of a cgroup fits on `mems`, and is not too much to move.

    What does not fit makes the kernel kill processes of the cgroup and of others there, while other
    nodes have free memory; huge pages without a free one of their size stay where they are. A move
    cannot be stopped or divided, and can stop the whole node.

    Args:
        path: the cgroup.
        mems: what it is to be bound to.
        use: its own memory; none if there is no memory controller.
        free: of each NUMA node; of a node that is missing nothing is known, and nothing is refused.
        most_moved_bytes: how much memory may be moved in one write.

    Raises:
        MemoryNotBoundError: it does not fit, or is too much.
    """
    _check_fit(path, mems, "", use.usual, free.usual)
    for size_bytes, used in sorted(use.huge.items()):
        pages = f" in huge pages of {size_bytes >> 10} KiB"
        _check_fit(path, mems, pages, used, free.huge.get(size_bytes, {}))
    elsewhere_bytes = _elsewhere_bytes(use.total, mems)
    if elsewhere_bytes > most_moved_bytes:
        has = f"it has {elsewhere_bytes >> 20} MiB on other NUMA nodes"
        most_mib = f"{most_moved_bytes / (1 << 20):.0f} MiB"
        why = f"at most {most_mib} are moved at once (--most-moved-memory); create the pod again"
        raise MemoryNotBoundError(path, mems, f"{has}, and {why}")


def _check_fit(path: str, mems: MemSet, pages: str, use: NodeBytes, free: NodeBytes) -> None:
    elsewhere_bytes = _elsewhere_bytes(use, mems)
    there_bytes = sum(free.get(node, 0) for node in mems)
    if all(node in free for node in mems) and elsewhere_bytes > there_bytes:
        has = f"it has {elsewhere_bytes >> 20} MiB{pages} on other NUMA nodes"
        do = "free memory there, or create the pod again"
        why = f"{has}, and only {there_bytes >> 20} MiB{pages} are free there; {do}"
        raise MemoryNotBoundError(path, mems, why)


def _elsewhere_bytes(use: NodeBytes, mems: MemSet) -> int:
    return sum(count for node, count in use.items() if node not in mems)
