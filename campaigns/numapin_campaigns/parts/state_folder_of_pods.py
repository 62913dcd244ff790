"""The folder in which the enforcer's pod keeps its assignment, on a small file system."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from numapin_campaigns.parts.state_folder import OPTIONS, Place, StateFolder, content_kept
from numapin_lab.errors import LabError
from numapin_lab.installed.running import InstalledLab
from numapin_lab.processes.daemons import Watched

FOLDER: Final = "/var/lib/numapin"
"""On the node and in the container: see manifests/base/enforcer.yaml."""

USERS: Final = ("enforcer", "standby")


@contextmanager
def own_file_system_of_pods(lab: InstalledLab, enforcer: Watched) -> Iterator[StateFolder]:
    """Give the node's folder a file system of its own meanwhile, with the same content.

    After an error it stays, with the rest of the lab.

    Args:
        lab: its enforcer and standby get new pods, before and after: a mount on the node does not
            get into a container that runs.
        enforcer: the process that runs now.

    Raises:
        LabError: it cannot be mounted, or a part does not become ready again.
    """
    machine = lab.cluster.machine

    def find() -> Place:
        lab.wait(lambda: enforcer.pid() is not None, "an enforcer that runs")
        return Place(FOLDER, enforcer.pid())

    with _away(lab), content_kept(_on_node(lab)):
        machine.run_inside(
            "mount", "--no-mtab", "-t", "tmpfs", "-o", OPTIONS, "numapin-lab", FOLDER
        )
    # The kubelet, whose root names the folder here, may be another process later.
    held = os.open(_on_node(lab), os.O_PATH | os.O_DIRECTORY)
    try:
        yield StateFolder(Path(f"/proc/self/fd/{held}"), find)
    finally:
        os.close(held)
    with _away(lab), content_kept(_on_node(lab)):
        machine.run_inside("umount", "--no-mtab", "--lazy", FOLDER)


def _on_node(lab: InstalledLab) -> Path:
    """The folder as processes of this machine reach it."""
    pid = lab.cluster.kubelet.daemon.pid()
    if pid is None:
        raise LabError("the kubelet does not run")
    return Path(f"/proc/{pid}/root{FOLDER}")


@contextmanager
def _away(lab: InstalledLab) -> Iterator[None]:
    """End enforcer and standby, and start them again afterwards."""
    for name in USERS:
        lab.kill(name)
    yield
    for name in USERS:
        lab.restart(name)
