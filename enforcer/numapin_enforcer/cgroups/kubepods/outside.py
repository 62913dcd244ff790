"""Finds the cgroups of containers outside of the kubelet's tree: started by `crictl`, for example.

Containers inside of it are read by `cgroupfs`.
"""

import re
from collections import deque
from collections.abc import Collection
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.cgroupfs import EFFECTIVE_FILES
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import list_folders, read_file
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import OutsideCgroup, Version

MOST_FOLDERS: Final = 4096
"""How many cgroups are searched; a node without the kubelet's has some 200."""

_ID: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def find_outside(mounts: Mounts, kubepods: str, ids: Collection[str]) -> dict[str, OutsideCgroup]:
    """The cgroups that these containers have outside of `kubepods`, by container id.

    Runtimes name a container's cgroup by its id, as in `k8s.io/<id>` or `docker-<id>.scope`. A
    cgroup without a cpuset has the CPUs of its parent.

    Args:
        mounts: where the cgroups are.
        kubepods: the kubelet's cgroup for pods, which is left out.
        ids: ids of 64 hexadecimal digits.
    """
    found: dict[str, OutsideCgroup] = {}
    pending, searched = deque([("", CpuSet())]), 0
    while pending and searched < MOST_FOLDERS and len(found) < len(ids):
        (path, above), searched = pending.popleft(), searched + 1
        folder = f"{mounts.cpuset}/{path}" if path else str(mounts.cpuset)
        cpus = _cpus(folder, mounts.version) or above
        named = _ID.search(path.rpartition("/")[2])
        if named is not None and named[0] in ids:
            found[named[0]] = OutsideCgroup(path, cpus)
            continue
        try:
            names = list_folders(folder, MOST_FOLDERS)
        except CgroupError:
            continue
        children = (f"{path}/{name}" if path else name for name in names)
        pending += ((child, cpus) for child in children if child != kubepods)
    return found


def _cpus(folder: str, version: Version) -> CpuSet:
    try:
        return CpuSet.parse(read_file(f"{folder}/{EFFECTIVE_FILES[version][0]}"))
    except CgroupError:
        return CpuSet()
