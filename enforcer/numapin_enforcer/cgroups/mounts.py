"""Finds where the controllers of cgroup v1 or v2 that the enforcer uses are mounted."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numapin_api.conditions.reasons import Reason
from numapin_enforcer.cgroups.tree import Version


class NoCpusetError(Exception):
    """No cpuset controller is mounted below the folder that was searched."""

    reason = Reason.CPUSET_CONTROLLER_MISSING

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"no cpuset controller below {folder}: neither v2 (cgroup.controllers) nor v1 "
            "(cpuset/cpuset.cpus); name the host's mount with --cgroupfs"
        )
        self.folder = folder


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the controllers are mounted; on v2 all are the same folder.

    `cpu` is None if there is no cpu controller: then there are no quotas. Without `memory` nothing
    is known of where memory is, and without `hugetlb` of where huge pages are. `cpuacct` is only on
    v1, where it counts the CPU time.
    """

    version: Version
    cpuset: Path
    cpu: Path | None
    memory: Path | None = None
    cpuacct: Path | None = None
    hugetlb: Path | None = None


def find_mounts(folder: Path) -> Mounts:
    """The controllers below `folder`, the host's `/sys/fs/cgroup`.

    Raises:
        NoCpusetError: there is no cpuset controller.
    """
    for unified in (folder, folder / "unified"):
        if "cpuset" in _controllers(unified):
            return Mounts(Version.V2, unified, unified, unified, hugetlb=unified)
    cpuset = _find_v1_mount(folder, "cpuset", "cpuset.cpus")
    if cpuset is None:
        raise NoCpusetError(folder)
    cpu = _find_v1_mount(folder, "cpu", "cpu.shares")
    memory = _find_v1_mount(folder, "memory", "memory.usage_in_bytes")
    cpuacct = _find_v1_mount(folder, "cpuacct", "cpuacct.usage_percpu")
    hugetlb = _find_v1_mount(folder, "hugetlb", "cgroup.procs")
    return Mounts(Version.V1, cpuset, cpu, memory, cpuacct, hugetlb)


def _controllers(folder: Path) -> list[str]:
    """The v2 controllers of a cgroup; none if the folder is not a v2 cgroup."""
    try:
        return (folder / "cgroup.controllers").read_text().split()
    except OSError:
        return []


def _find_v1_mount(folder: Path, controller: str, proof: str) -> Path | None:
    """The mount of one v1 controller below `folder`, recognised by its file `proof`.

    Controllers may share a mount, as in `cpu,cpuacct`.
    """
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if controller in path.name.split(",") and (path / proof).exists():
                return path
    return None
