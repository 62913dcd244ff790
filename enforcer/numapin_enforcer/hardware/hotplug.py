"""This machine's hardware, discovered again when CPUs or NUMA nodes come or go."""

from pathlib import Path
from typing import Final

from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.hardware.remarks import Remarks
from numapin_enforcer.hardware.sysfs_tree import CPU_FOLDER, NODE_FOLDER, SysfsTree

WATCHED: Final = (f"{CPU_FOLDER}/online", f"{NODE_FOLDER}/online", f"{NODE_FOLDER}/has_memory")
"""The files that a hotplug changes; reading them is quick enough for every pass."""


class Machine:
    """The topology of the host.

    Raises:
        DiscoveryError: no online CPU can be read.
    """

    def __init__(self, sysfs: Path, procfs: Path) -> None:
        self._sysfs, self._procfs = sysfs, procfs
        self._tree = SysfsTree(sysfs, Remarks())
        self._seen = self._online()
        self.topology: Topology = discover(sysfs, procfs)

    def rescan(self) -> bool:
        """Discover again if a CPU or NUMA node came or went; returns whether `topology` changed."""
        seen = self._online()
        if seen == self._seen:
            return False
        self._seen, before = seen, self.topology
        self.topology = discover(self._sysfs, self._procfs)
        return self.topology != before

    def _online(self) -> tuple[str | None, ...]:
        return tuple(map(self._tree.text, WATCHED))
