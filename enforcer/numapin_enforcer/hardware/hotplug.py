"""This machine's hardware, discovered again when CPUs or memory come or go."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from numapin_api.cpuset import MemSet
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.tree import AllowedSets
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.hardware.part import NOTHING, limits, part_of, withheld_from
from numapin_enforcer.hardware.sysfs.device_memory import read_gpu_nodes
from numapin_enforcer.hardware.sysfs.names import read_names
from numapin_enforcer.hardware.sysfs.numa import (
    read_free_hugepages,
    read_hugepages,
    read_memory_bytes,
    read_online_nodes,
)
from numapin_enforcer.hardware.sysfs.remarks import Remarks
from numapin_enforcer.hardware.sysfs.sysfs_tree import CPU_FOLDER, NODE_FOLDER, SysfsTree

WATCHED: Final = (f"{CPU_FOLDER}/online", f"{NODE_FOLDER}/online", f"{NODE_FOLDER}/has_memory")
"""The files that a hotplug changes; reading them is quick enough for every pass."""

LEAST_CHANGE_BYTES: Final = 1 << 20
"""Memory that comes or goes counts from here on: kernel and drivers take and free single pages."""


class Machine:
    """The part of the host that pods may use, and its free huge pages.

    Raises:
        DiscoveryError: no online CPU can be read.
    """

    def __init__(
        self, sysfs: Path, procfs: Path, allowed: Callable[[], AllowedSets] | None = None
    ) -> None:
        """Args: `allowed` reads what pods may use; without it, they may use everything."""
        self._sysfs, self._procfs, self._allowed = sysfs, procfs, allowed
        self._seen, self._gpus = self._online(), self._gpu_nodes()
        self._whole, self._withheld = discover(sysfs, procfs), NOTHING
        self._read_limits()
        self.topology: Topology = part_of(self._whole, self._withheld)

    def rescan(self, *, pages: bool = False) -> bool:
        """Discover again if a CPU or NUMA node came or went; returns whether `topology` changed.

        Args:
            pages: look whether the memory of a NUMA node, the number of its huge pages, the names
                of network interfaces and disks or what pods may use has changed, too, and whether
                the driver of a GPU names another NUMA node: it may have been loaded after its
                memory came. Until then, pods may use a CPU that comes online.
        """
        before = (self._whole, self._withheld)
        seen, gpus = self._online(), self._gpu_nodes() if pages else self._gpus
        changed = pages and (self._memory_changed() or self._names_changed())
        if (seen, gpus) != (self._seen, self._gpus) or changed:
            self._seen, self._gpus = seen, gpus
            self._whole = discover(self._sysfs, self._procfs)
        if pages:
            self._read_limits()
        if self._whole is before[0] and self._withheld == before[1]:
            return False
        last, self.topology = self.topology, part_of(self._whole, self._withheld)
        return self.topology != last

    @property
    def limits(self) -> str:
        """What pods may use of the machine, and why no more; empty if it is all of it."""
        return "; ".join(limits(self.topology, self._whole))

    def free_hugepages(self) -> dict[int, dict[str, int]]:
        """How many huge pages of each size are free now; NUMA nodes without any are left out."""
        tree = self._tree()
        return {
            node.id: pages
            for node in self.topology.numa_nodes
            if not node.on_device and (pages := read_free_hugepages(tree, node))
        }

    def _read_limits(self) -> None:
        if self._allowed is not None:
            self._withheld = withheld_from(self._whole, self._allowed())

    def _memory_changed(self) -> bool:
        sysfs = self._tree()
        sizes = read_memory_bytes(sysfs, self._proc(), read_online_nodes(sysfs))
        return any(
            abs(sizes.get(node.id, 0) - node.memory_bytes) >= LEAST_CHANGE_BYTES
            or read_hugepages(sysfs, node.id) != node.hugepages
            for node in self._whole.numa_nodes
        )

    def _names_changed(self) -> bool:
        return read_names(self._tree()) != self._whole.names

    def _gpu_nodes(self) -> MemSet:
        return read_gpu_nodes(self._proc())

    def _online(self) -> tuple[str | None, ...]:
        return tuple(map(self._tree().text, WATCHED))

    def _tree(self) -> SysfsTree:
        return SysfsTree(self._sysfs, Remarks())

    def _proc(self) -> SysfsTree:
        return SysfsTree(self._procfs, Remarks(), "proc/")
