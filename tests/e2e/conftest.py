"""The whole of numapin on a real node."""

from collections.abc import Iterator

import pytest

from numapin_lab.cluster import Cluster
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import RunningLab


@pytest.fixture(scope="session")
def lab_folder(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabFolder]:
    """A lab that is down; everything that a test starts in it is removed at the end."""
    folder = LabFolder(tmp_path_factory.mktemp("lab"))
    try:
        yield folder
    finally:
        folder.down()


@pytest.fixture(scope="session")
def cluster(lab_folder: LabFolder) -> Cluster:
    """Every part of a lab that is up, operator and enforcer included."""
    return lab_folder.up()


@pytest.fixture
def lab(cluster: Cluster) -> Iterator[RunningLab]:
    """The running lab with no pod and no policy on it, before and after the test.

    `.apply(...)` and `.kubectl(...)` act as its administrator, `.allowed(pod)` and `.cpusets()`
    read the kernel, `.kill(...)` and `.restart(...)` end and start operator and enforcer.
    """
    running = RunningLab(cluster)
    running.clear()
    yield running
    running.clear()
