"""Edge: this machine's hardware, looked at again when CPUs or NUMA nodes come and go."""

from pathlib import Path
from typing import Final

from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import discover

WATCHED: Final = (
    "devices/system/cpu/online",
    "devices/system/node/online",
    "devices/system/node/has_memory",
)
"""What a hotplug changes; reading these is quick enough for every pass."""


class Machine:
    """The topology of the host.

    Raises:
        DiscoveryError: not one online CPU can be read.
    """

    def __init__(self, sysfs: Path, procfs: Path) -> None:
        self._sysfs, self._procfs = sysfs, procfs
        self._seen = self._online()
        self.topology: Topology = discover(sysfs, procfs)

    def rescan(self) -> bool:
        """Discover anew if something came or went; says whether the topology is another one."""
        seen = self._online()
        if seen == self._seen:
            return False
        self._seen, before = seen, self.topology
        self.topology = discover(self._sysfs, self._procfs)
        return self.topology != before

    def _online(self) -> tuple[str, ...]:
        return tuple(_text(self._sysfs / name) for name in WATCHED)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # not every kernel has every file
        return ""
