"""A full or read-only state folder: nothing is promised that a restart would not know."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.node.lock import NodeLock
from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of
from support.real.waiting import eventually


@pytest.fixture
def disk(node: Node) -> Iterator[Path]:
    """A small disk of its own below the state folder."""
    folder = Path(node.options["state-dir"])
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}"], check=False, capture_output=True)
    return filler


def make_read_only(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)


async def test_on_a_full_disk_no_new_container_is_reported_exclusive(
    node: Node, kubelet: Kubelet, disk: Path
) -> None:
    first, second = await kubelet.run_pod("first"), await kubelet.run_pod("second")
    cgroups = [f"{pod.cgroup}/{await kubelet.run(pod, 'main')}" for pod in (first, second)]
    await node.start()
    await node.applied(spec(assigned(first.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive)
    filler = fill(disk)
    node.assign(spec(assigned(second.uid, "main", "1"), shared="0"))
    await eventually(lambda: cpus_of(cgroups[1]) == "1")
    await eventually(lambda: node.condition("Stalled")[1] == "AssignmentNotSaved")
    assert "No space left on device" in node.condition("Ready")[2]
    assert [one["exclusive"] for one in node.status["containers"]] == [False]
    filler.unlink()
    await eventually(node.reports_exclusive, "the copy to be saved")
    await eventually(node.in_force)


async def test_in_a_read_only_folder_the_lock_is_still_taken(
    node: Node, kubelet: Kubelet, disk: Path
) -> None:
    await kubelet.run_pod("first")
    NodeLock(disk).create()
    make_read_only(disk)
    await node.start()
    node.assign(spec())
    await eventually(lambda: node.condition("Stalled")[1] == "AssignmentNotSaved")
    assert "Read-only file system" in node.condition("Ready")[2]
    assert not NodeLock(disk).try_acquire()
    assert "the node's lock cannot be taken" not in node.log
