"""Numapin was deleted before its policies: the page's command clears the node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_cli.main import main
from numapin_daemon.version import VERSION
from numapin_lab.installed.running import InstalledLab, running
from numapin_lab.installed.uninstall import DELETED, left_in_cluster, left_on_node
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from support.real.changing.cpu_limits import NO_QUOTA, quotas
from support.real.installing.readme import release_nodes

ENFORCER = f"numapin-enforcer:{VERSION}"
OWN, SHARED, EVERYTHING = CpuSet.parse("1"), CpuSet.parse("0"), CpuSet.parse("0-1")


@pytest.fixture
def removable(root: None, tmp_path: Path) -> Iterator[InstalledLab]:
    """A lab of its own with numapin's pods: they are deleted here."""
    folder = LabFolder(tmp_path / "lab", pods=True)
    try:
        lab = running(folder.up())
        assert isinstance(lab, InstalledLab)
        yield lab
    finally:
        folder.down()


def test_a_node_is_released_by_pod_after_everything_was_deleted(
    removable: InstalledLab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = removable
    delayed = policy(releaseDelay="10m")  # else the pods may release the node while they end
    lab.apply(delayed, pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    lab.eventually(lab.reported_exclusive, [True])
    lab.kubectl("delete", "-k", str(lab.cluster.overlay), DELETED)
    assert left_in_cluster(lab.kubectl) == []
    assert (lab.allowed("owner"), lab.allowed("neighbour")) == (OWN, SHARED)
    assert quotas(lab, "owner") == (NO_QUOTA, NO_QUOTA)

    flags = ("--kubeconfig", str(lab.cluster.plane.kubeconfig))
    assert main([*release_nodes(ENFORCER), *flags]) == 0
    assert f"node/{lab.node} released (1 of 1)" in capsys.readouterr().out
    assert lab.allowed("owner") == lab.allowed("neighbour") == EVERYTHING
    assert quotas(lab, "owner") == (100_000, 100_000)
    lab.delete("pod", "owner", "neighbour")
    lab.eventually(lambda: left_on_node(lab.cluster), [])
