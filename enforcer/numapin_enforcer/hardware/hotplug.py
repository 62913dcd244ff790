"""This machine's hardware, discovered again when CPUs, NUMA nodes or huge pages come or go."""

from pathlib import Path
from typing import Final

from numapin_api.topology import Topology
from numapin_enforcer.hardware.device_memory import read_gpu_nodes
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.hardware.numa import read_free_hugepages, read_hugepages
from numapin_enforcer.hardware.remarks import Remarks
from numapin_enforcer.hardware.sysfs_tree import CPU_FOLDER, NODE_FOLDER, SysfsTree

WATCHED: Final = (f"{CPU_FOLDER}/online", f"{NODE_FOLDER}/online", f"{NODE_FOLDER}/has_memory")
"""The files that a hotplug changes; reading them is quick enough for every pass."""


class Machine:
    """The topology of the host, and its free huge pages.

    Raises:
        DiscoveryError: no online CPU can be read.
    """

    def __init__(self, sysfs: Path, procfs: Path) -> None:
        self._sysfs, self._procfs = sysfs, procfs
        self._tree, self._proc = SysfsTree(sysfs, Remarks()), SysfsTree(procfs, Remarks())
        self._seen, self._gpus = self._online(), read_gpu_nodes(self._proc)
        self.topology: Topology = discover(sysfs, procfs)

    def rescan(self, *, pages: bool = False) -> bool:
        """Discover again if a CPU or NUMA node came or went; returns whether `topology` changed.

        Args:
            pages: look whether the number of huge pages changed, too, and whether the driver of a
                GPU names another NUMA node: it may have been loaded after its memory came.
        """
        seen, gpus = self._online(), read_gpu_nodes(self._proc) if pages else self._gpus
        if (seen, gpus) == (self._seen, self._gpus) and not (pages and self._pages_changed()):
            return False
        self._seen, self._gpus, before = seen, gpus, self.topology
        self.topology = discover(self._sysfs, self._procfs)
        return self.topology != before

    def free_hugepages(self) -> dict[int, dict[str, int]]:
        """How many huge pages of each size are free now; NUMA nodes without any are left out."""
        return {
            node.id: pages
            for node in self.topology.numa_nodes
            if not node.on_device and (pages := read_free_hugepages(self._tree, node))
        }

    def _pages_changed(self) -> bool:
        return any(
            read_hugepages(self._tree, node.id) != node.hugepages
            for node in self.topology.numa_nodes
        )

    def _online(self) -> tuple[str | None, ...]:
        return tuple(map(self._tree.text, WATCHED))
