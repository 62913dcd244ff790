"""A lab whose node is a virtual machine, brought up for a test."""

from collections.abc import Set as AbstractSet

from numapin_lab.cluster import VmCluster
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab


def vm_up(folder: LabFolder, without: AbstractSet[str] = frozenset()) -> RunningVmLab:
    """Bring it up, but for the agents `without`."""
    cluster = folder.up(without)
    assert isinstance(cluster, VmCluster)
    return RunningVmLab(cluster)
