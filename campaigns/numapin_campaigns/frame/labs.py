"""A lab with a virtual node, for one campaign."""

from collections.abc import Iterator
from contextlib import contextmanager

from numapin_lab.cluster import VmCluster
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab


@contextmanager
def vm_lab(folder: LabFolder, keep: bool) -> Iterator[RunningVmLab]:
    """It is taken down at the end, also on Ctrl-C.

    Raises:
        LabError: the folder has another lab.
    """
    known = folder.state()
    if known and not known.vm:
        raise LabError(f"the node of {folder.path} is this machine; take the lab down")
    try:
        cluster = folder.up()
        assert isinstance(cluster, VmCluster)
        lab = RunningVmLab(cluster)
        lab.clear()
        yield lab
    finally:
        if not keep:
            folder.down()
