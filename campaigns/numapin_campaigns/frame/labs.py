"""The labs that campaigns are carried out on, with nothing on them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from numapin_lab.cluster import VmCluster
from numapin_lab.errors import LabError
from numapin_lab.installed.running import running
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import RunningLab
from numapin_lab.vm.running_lab import RunningVmLab

KUBELET: Final[Mapping[str, Any]] = {
    "featureGates": {"KubeletCrashLoopBackOffMax": True},
    "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
}
"""Settings of the kubelet. As it is set up by default, it waits up to 5 minutes before it starts a
container again that was killed some times, and nothing would be down meanwhile but this part."""


@contextmanager
def lab_on_this_machine(folder: LabFolder, keep: bool) -> Iterator[RunningLab]:
    """After an error the lab stays up, so that its logs can be read."""
    lab = running(folder.up(kubelet=KUBELET if folder.pods else None))
    lab.clear()
    yield lab
    lab.clear()
    if not keep:
        folder.down()


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
