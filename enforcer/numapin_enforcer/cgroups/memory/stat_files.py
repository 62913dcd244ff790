"""The kernel's files of the huge pages of a cgroup, and of what NUMA nodes have free."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import read_file
from numapin_enforcer.cgroups.memory.use import NodeMemory, parse_available, parse_free
from numapin_enforcer.cgroups.mounts import Mounts

_HUGE: Final = re.compile(r"(hugetlb\.\d{1,6}[KMG]B)\.numa_stat", re.ASCII)
_SYSFS_SIZE: Final = "hugepages-"


def read_hugetlb_stat(mounts: Mounts, path: str) -> str:
    """The lines of `hugetlb.*.numa_stat` of a cgroup (Linux 5.17), each after its size.

    Nothing if there is no hugetlb controller; a file that cannot be read has no line. v1 has a
    second line, in which the descendants are counted; v2 has no other.
    """
    lines: list[str] = []
    if mounts.hugetlb is not None:
        folder = mounts.hugetlb / path
        for size in _sizes(folder):
            with suppress(CgroupError):
                text = read_file(f"{folder}/{size}.numa_stat")
                lines.append(f"{size} {text.rpartition(chr(10))[2]}")
    return "\n".join(lines)


def read_free(sysfs: Path, nodes: Sequence[int], sizes: Sequence[int]) -> NodeMemory:
    """What is free on NUMA nodes; those of which a file cannot be read are left out.

    Args:
        sysfs: where sysfs is mounted.
        nodes: the NUMA nodes.
        sizes: the sizes of huge pages to look for, in bytes.
    """
    usual: dict[int, int] = {}
    huge: dict[int, dict[int, int]] = {size: {} for size in sizes}
    for node in nodes:
        folder = sysfs / f"devices/system/node/node{node}"
        with suppress(OSError):
            usual[node] = parse_free((folder / "meminfo").read_text())
        for size in sizes:
            file = folder / f"hugepages/{_SYSFS_SIZE}{size >> 10}kB/free_hugepages"
            with suppress(OSError, ValueError):
                huge[size][node] = int(file.read_text()) * size
    return NodeMemory(usual, huge)


def read_available(sysfs: Path, node: int) -> int | None:
    """What of a NUMA node is free or could be freed, in bytes; None if it cannot be read."""
    try:
        return parse_available((sysfs / f"devices/system/node/node{node}/meminfo").read_text())
    except (OSError, UnicodeDecodeError):
        return None


def _sizes(folder: Path) -> tuple[str, ...]:
    with suppress(OSError):
        return tuple(
            sorted(found[1] for one in folder.iterdir() if (found := _HUGE.fullmatch(one.name)))
        )
    return ()
