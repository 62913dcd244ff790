"""Which of the kubelet's two possible trees is used, also after its driver was changed."""

from pathlib import Path

import pytest

from numapin_enforcer.cgroups.kubepods import KubepodsFinder
from numapin_enforcer.cgroups.naming import Driver

OLD, NEW = "kubepods", "kubepods.slice"
NEW_POD = f"{NEW}/kubepods-pod1.slice"
SETS = {
    "cpuset.cpus": "",
    "cpuset.mems": "",
    "cpuset.cpus.effective": "0-1",
    "cpuset.mems.effective": "0",
}


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).mkdir(parents=True)
        for name, text in SETS.items():
            (root / path / name).write_text(text)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu")
    put(tmp_path, OLD, f"{OLD}/podold")
    return tmp_path


def opened(finder: KubepodsFinder) -> Driver:
    tree = finder.open()
    assert tree is not None
    return tree.naming.driver


def test_the_tree_with_containers_is_used_once_the_driver_was_changed(mount: Path) -> None:
    finder = KubepodsFinder(mount, "/")
    assert not finder.moved()
    assert (opened(finder), finder.moved()) == (Driver.CGROUPFS, False)
    put(mount, NEW)
    assert not finder.moved()
    put(mount, NEW_POD, f"{NEW_POD}/cri-containerd-{'a' * 64}.scope")
    assert (opened(finder), finder.moved()) == (Driver.CGROUPFS, True)
    finder.close()
    assert (opened(finder), finder.moved()) == (Driver.SYSTEMD, False)
    finder.close()


def test_a_tree_without_a_cpuset_is_not_used_if_there_is_another(mount: Path) -> None:
    """systemd takes the controllers from slices without processes."""
    (mount / NEW).mkdir()
    finder = KubepodsFinder(mount, "/")
    assert (opened(finder), finder.moved()) == (Driver.CGROUPFS, False)
    finder.close()
