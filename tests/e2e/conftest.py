"""The whole of numapin on a real node, as pods or as processes of this checkout.

Numapin is installed as users do it, from `manifests/overlays/default` and the images of this
checkout. A test that is marked `from_source` cannot run so, says why, and has numapin as processes
from source. `NUMAPIN_TEST_AS=processes` runs every test so; `=pods` skips those that need it.
Which way it was is in the test's id.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest

from numapin_campaigns.frame.labs import KUBELET
from numapin_lab.cluster import Cluster
from numapin_lab.installed.running import running
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import RunningLab

CHOICE: Final = "NUMAPIN_TEST_AS"
PODS, PROCESSES = WAYS = ("pods", "processes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose how numapin runs in each test that needs it."""
    if "numapin" in metafunc.fixturenames:
        way = _way(metafunc.definition)
        metafunc.parametrize("numapin", [way], indirect=True, scope="session")


def _way(test: pytest.Item) -> object:
    chosen = os.environ.get(CHOICE, "")
    if chosen and chosen not in WAYS:
        raise pytest.UsageError(f"{CHOICE} is {chosen}, and must be one of {', '.join(WAYS)}")
    source = test.get_closest_marker("from_source")
    if source is not None:
        marks = [pytest.mark.skip(reason=f"not as pods: {source.args[0]}")] * (chosen == PODS)
        return pytest.param(PROCESSES, marks=marks)
    return chosen or PODS


@pytest.fixture(scope="session")
def numapin(request: pytest.FixtureRequest) -> str:
    """How numapin runs: `pods` or `processes`."""
    return str(request.param)


@pytest.fixture(scope="session")
def lab_folder(
    root: None, numapin: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabFolder]:
    """A lab that is down; everything that a test starts in it is removed at the end."""
    folder = LabFolder(tmp_path_factory.mktemp("lab"), pods=numapin == PODS)
    try:
        yield folder
    finally:
        folder.down()


@pytest.fixture(scope="session")
def cluster(lab_folder: LabFolder) -> Cluster:
    """Every part of a lab that is up, operator and enforcer included.

    The kubelet starts a container of a pod again within a second after it was killed.
    """
    return lab_folder.up(kubelet=KUBELET if lab_folder.pods else None)


@pytest.fixture
def lab(cluster: Cluster) -> Iterator[RunningLab]:
    """The running lab with no pod and no policy on it, before and after the test.

    `.apply(...)` and `.kubectl(...)` act as its administrator, `.allowed(pod)` and `.cpusets()`
    read the kernel, `.kill(...)` and `.restart(...)` end and start operator and enforcer.
    """
    found = running(cluster)
    found.clear()
    yield found
    found.clear()
