"""What the kernel says of cgroups, read and written by hand."""

from pathlib import Path

from numapin_lab.node.cgroups import MOUNTS, hierarchies

EFFECTIVE = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}
VERSION, CPUSET = next(
    (version, mount)
    for mount in hierarchies(MOUNTS.read_text())
    for version, name in EFFECTIVE.items()
    if (mount / name).exists()
)
CPU = Path("/sys/fs/cgroup/cpu")


def cpus_of(cgroup: str) -> str:
    """The CPUs that the kernel lets a cgroup use."""
    return (CPUSET / cgroup / EFFECTIVE[VERSION]).read_text().strip()


def pids_of(cgroup: str) -> tuple[int, ...]:
    """The processes in a cgroup."""
    return tuple(map(int, (CPUSET / cgroup / "cgroup.procs").read_text().split()))


def limit_of(cgroup: str) -> str:
    """The CFS limit that the kernel holds a cgroup to, in microseconds of each period."""
    return (CPU / cgroup / "cpu.cfs_quota_us").read_text().strip()


def write_limit(cgroup: str, quota_us: int) -> None:
    """Limit a cgroup, as the kubelet limits a pod's."""
    (CPU / cgroup / "cpu.cfs_quota_us").write_text(str(quota_us))


def write_cpus(cgroup: str, cpus: str) -> None:
    """Overwrite a cgroup's CPUs by hand."""
    (CPUSET / cgroup / "cpuset.cpus").write_text(cpus)
