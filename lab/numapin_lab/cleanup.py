"""Leave nothing behind: processes, containers, cgroups, mounts, namespaces, sockets."""

import shutil
from pathlib import Path

from numapin_lab.errors import LabError
from numapin_lab.node import mounts
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.processes.daemons import kill, marked


def clear(lab: Path, run: Path, cgroup: LabCgroup) -> None:
    """End everything that belongs to `lab`, and remove what it left in the machine.

    Daemons and shims go first, so that nothing brings a container back; then the containers, which
    are whatever lives in `cgroup`; then their mounts, of which network namespaces are some.

    Args:
        lab: the lab's folder, which all its processes carry in their environment.
        run: sockets and state of its container runtime.
        cgroup: where its pods are.

    Raises:
        LabError: a process or cgroup resists; the message names it.
    """
    while pids := list(marked(lab)):
        for pid in pids:
            kill(pid)
    cgroup.remove()
    mounts.unmount_below(lab, run)
    left = mounts.below(mounts.MOUNTS.read_text(), (lab, run))
    if left:  # removing what is below would remove what is mounted there
        raise LabError(f"{left[0]} cannot be unmounted")
    if run.exists():
        _remove_shim_sockets(run)
        shutil.rmtree(run)


def _remove_shim_sockets(run: Path) -> None:
    """An older containerd knows no `socket_dir` and uses the machine's folder: remove only ours."""
    for file in run.glob("containerd/io.containerd.runtime.v2.task/*/*/address"):
        Path(file.read_text().removeprefix("unix://")).unlink(missing_ok=True)
