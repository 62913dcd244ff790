"""A private folder of cgroups in this machine's kernel, with the operations of the model."""

import errno
import os
import secrets
import signal
import subprocess
from pathlib import Path
from typing import Self

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.mounts import find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Tree, Version, parent
from numapin_enforcer.cgroups.write import Write

CGROUPFS = Path("/sys/fs/cgroup")
SYSTEM = Path("/sys/devices/system")
HOTPLUG = "NUMAPIN_TEST_HOTPLUG"
"""Set to 1 in the environment of a machine whose CPUs may be taken offline: a VM of one's own."""


EXAMPLES = "NUMAPIN_TEST_EXAMPLES"
"""How many examples a test on the real kernel tries, where its own number takes too long."""


def examples(usual: int) -> int:
    return int(os.environ.get(EXAMPLES, usual))


def possible_cpus() -> CpuSet:
    return CpuSet.parse((SYSTEM / "cpu/possible").read_text().strip())


def online_cpus() -> CpuSet:
    return CpuSet.parse((SYSTEM / "cpu/online").read_text().strip())


def memory_nodes() -> MemSet:
    return MemSet.parse((SYSTEM / "node/has_memory").read_text().strip())


def may_hotplug() -> bool:
    return os.environ.get(HOTPLUG) == "1"


class RealCgroups:
    """Cgroups below a new folder; `with` it, everything is removed at the end, CPUs are back."""

    def __init__(self) -> None:
        self.mounts = find_mounts(CGROUPFS)
        self.version = self.mounts.version
        self._folder = f"numapin-test-{secrets.token_hex(4)}"
        self.naming = CgroupNaming(Driver.CGROUPFS, self._folder)
        self.root = self.naming.root
        self._top = self.mounts.cpuset
        self._sleepers: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._kernel = Cgroupfs(self.mounts, self.root)

    def __enter__(self) -> Self:
        for path in (self._folder, self.root):
            self.make(path)
            if self.version is Version.V1:
                (self._top / path / "cpuset.cpus").write_text(str(online_cpus()))
                (self._top / path / "cpuset.mems").write_text(str(memory_nodes()))
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self.remove(self.root)
        (self._top / self._folder).rmdir()

    def clear(self) -> None:
        """Every process away, every cgroup but the root away, every CPU online."""
        for sleepers in self._sleepers.values():
            for sleeper in sleepers:
                sleeper.send_signal(signal.SIGKILL)
                sleeper.wait()
        self._sleepers = {}
        if may_hotplug():
            self.set_online(possible_cpus())
        folder = self._top / self.root
        for path in sorted(folder.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
            path.rmdir()
        if self.version is Version.V2:
            (folder / "cgroup.subtree_control").write_text("-cpuset -cpu -memory")
            for name in ("cpuset.cpus", "cpuset.mems"):
                (folder / name).write_text("\n")

    def make(self, path: str) -> None:
        """As mkdir; on v2 the parent gives its controllers, as the kubelet's cgroups do.

        It cannot with tasks inside; memory is what makes that so, cpuset alone could be threaded.
        """
        if self.version is Version.V2:
            (self._top / parent(path) / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")
        (self._top / path).mkdir()

    def remove(self, path: str) -> None:
        """As rmdir; on v2 a parent without children takes its controllers back."""
        (self._top / path).rmdir()
        above = self._top / parent(path)
        if self.version is Version.V2 and not any(above.glob("*/")):
            (above / "cgroup.subtree_control").write_text("-cpuset -cpu -memory")

    def enter(self, path: str) -> None:
        """A new process comes in."""
        if not (self._top / path).exists():
            raise OSError(errno.ENOENT, "gone")
        sleeper = subprocess.Popen(["sleep", "1000"])
        try:
            (self._top / path / "cgroup.procs").write_text(str(sleeper.pid))
        except OSError:
            sleeper.kill()
            sleeper.wait()
            raise
        self._sleepers.setdefault(path, []).append(sleeper)

    def leave(self, path: str) -> None:
        """One of the processes that came in ends."""
        sleeper = self._sleepers[path].pop()
        sleeper.kill()
        sleeper.wait()

    def set_online(self, online: CpuSet) -> None:
        """Take CPUs offline and online; only where `HOTPLUG` says so."""
        for cpu in possible_cpus() - CpuSet((0,)):
            (SYSTEM / f"cpu/cpu{cpu}/online").write_text("1" if cpu in online else "0")

    def read(self) -> Tree:
        return self._kernel.read()

    def read_effective_cpus(self, path: str) -> CpuSet:
        return self._kernel.read_effective_cpus(path)

    def write(self, write: Write) -> None:
        self._kernel.write(write)
