"""Which CPUs and NUMA nodes the kernel lets the kubelet's cgroups use.

Containers, virtual environments and administrators (`AllowedCPUs=` of a slice) give a node a part
of the machine's CPUs and NUMA nodes.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.cgroupfs import EFFECTIVE_FILES
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import read_file, read_files
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import AllowedSets, Cgroup, Version, parent

_EXCLUSIVE: Final = "cpuset.cpus.exclusive.effective"
_OF_ROOT: Final = "the root cgroup here has no others (the node is a container, or a partition)"


def read_allowed(mounts: Mounts, root: str, cgroups: Iterable[Cgroup] = ()) -> AllowedSets:
    """What pods may use: on v2 what `root` has, on v1 what its parent has.

    On v1 the kernel takes an offline CPU out of `root` for good, so that what it lacks is no
    administrator's setting: the enforcer gives it back. On v2 the enforcer never writes to `root`.

    Args:
        mounts: where the controllers are.
        root: the cgroup that holds all pods; it need not exist.
        cgroups: those below it. One that is a cpuset partition has CPUs that `root` lacks. While
            they are not known, what `root` may pass to partitions counts.
    """
    found = list(_sets(mounts, root if mounts.version is Version.V2 else parent(root)))
    if not found:
        return AllowedSets()
    _, cpus, mems = found[0]
    passed = _passed_to_partitions(mounts, root)
    by_cpus = next(path for path, has, _ in reversed(found) if has == cpus)
    by_mems = next(path for path, _, has in reversed(found) if has == mems)
    return AllowedSets(
        CpuSet.union((cpus, passed, *(one.effective_cpus for one in cgroups))),
        mems,
        _limit(by_cpus, "cpuset.cpus", "AllowedCPUs="),
        _limit(by_mems, "cpuset.mems", "AllowedMemoryNodes="),
    )


def _sets(mounts: Mounts, path: str) -> Iterator[tuple[str, CpuSet, MemSet]]:
    """The effective sets of a cgroup and its ancestors, as far as they can be read."""
    above: str | None = path
    while above is not None:
        try:
            texts, _ = read_files(f"{mounts.cpuset}/{above}", EFFECTIVE_FILES[mounts.version])
            cpus, mems = (text.decode("ascii").strip() for text in texts)
            if cpus and mems:
                yield above, CpuSet.parse(cpus), MemSet.parse(mems)
        except (CgroupError, ValueError):
            pass
        above = parent(above) if above else None


def _passed_to_partitions(mounts: Mounts, root: str) -> CpuSet:
    """The CPUs that partitions below `root` may have; none on v1 and before Linux 6.7."""
    with suppress(CgroupError, ValueError):
        if mounts.version is Version.V2:
            return CpuSet.parse(read_file(f"{mounts.cpuset}/{root}/{_EXCLUSIVE}"))
    return CpuSet()


def _limit(path: str, file: str, setting: str) -> str:
    if not path:
        return _OF_ROOT
    return f"cgroup {path} has no others ({file}, or {setting} in systemd)"
