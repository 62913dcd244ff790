"""Remove what a lab has created: processes, containers, cgroups, mounts, namespaces, sockets."""

import shutil
from pathlib import Path
from typing import Final

from numapin_lab.errors import LabError
from numapin_lab.node import mounts
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.processes.daemons import kill, marked

MEMORY: Final = Path("/dev/shm")


def in_memory(run: Path) -> Path:
    """A folder in memory for what a node has in `/run`; it need not exist.

    `/run` of a development machine may be on a disk, which holds up who writes there.
    """
    return MEMORY / run.name


def clear(lab: Path, run: Path, cgroup: LabCgroup) -> None:
    """End every process of `lab`, and remove its cgroups, mounts and sockets.

    Daemons and shims end first, so that no container is started again; then the containers, which
    are all processes in `cgroup`; then their mounts, network namespaces included.

    Args:
        lab: the lab's folder, which is in the environment of all its processes.
        run: sockets and state of its container runtime.
        cgroup: the cgroup of its pods.

    Raises:
        LabError: a process or a cgroup cannot be removed; the message names it.
    """
    while pids := list(marked(lab)):
        for pid in pids:
            kill(pid)
    cgroup.remove()
    mounts.unmount_below(lab, run)
    left = mounts.below(mounts.MOUNTS.read_text(), (lab, run))
    if left:  # removing the folder would remove the files that are mounted there
        raise LabError(f"{left[0]} cannot be unmounted")
    if run.exists():
        _remove_shim_sockets(run)
        shutil.rmtree(run)
    shutil.rmtree(in_memory(run), ignore_errors=True)


def _remove_shim_sockets(run: Path) -> None:
    """Remove sockets in the machine's folder, which a containerd without `socket_dir` uses."""
    for file in run.glob("containerd/io.containerd.runtime.v2.task/*/*/address"):
        Path(file.read_text().removeprefix("unix://")).unlink(missing_ok=True)
