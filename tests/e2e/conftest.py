"""The whole of numapin on a real node."""

from collections.abc import Iterator

import pytest

from numapin_lab.cluster import Cluster
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import Session


@pytest.fixture(scope="session")
def lab_folder(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabFolder]:
    """A lab that is down; whatever a test brings up in it is removed at the end."""
    folder = LabFolder(tmp_path_factory.mktemp("lab"))
    try:
        yield folder
    finally:
        folder.down()


@pytest.fixture(scope="session")
def lab(lab_folder: LabFolder) -> Cluster:
    """A running lab with operator and enforcer.

    `.kubectl(...)` and `.api` act as its administrator, `.containers()` is the kernel's view of all
    that runs, `.agents` can be stopped and started. `lab.runtime.image` needs no pull.
    """
    return lab_folder.up()


@pytest.fixture
def session(lab: Cluster) -> Iterator[Session]:
    """The lab with nothing on it, before and after."""
    session = Session(lab)
    session.clear()
    yield session
    session.clear()
