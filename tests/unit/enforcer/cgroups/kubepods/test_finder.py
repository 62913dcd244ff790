"""Which of the kubelet's two possible trees is used, also after its driver was changed."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import Driver
from numapin_enforcer.cgroups.watch.instance import Inotify

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


def instances() -> int:
    """How many inotify instances this process has."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(entry.readlink()))
    return links.count("anon_inode:inotify")


def test_the_tree_is_watched_also_where_no_watch_is_left(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent, which is not below it, is refused first."""

    def full(self: Inotify, path: str, mask: int) -> int:
        raise OSError(errno.ENOSPC, "raise fs.inotify.max_user_watches")

    monkeypatch.setattr(Inotify, "add", full)
    finder = KubepodsFinder(mount, "/")
    assert opened(finder) is Driver.CGROUPFS
    assert "raise fs.inotify.max_user_watches" in finder.watch_problem
    finder.close()


def test_a_tree_that_cannot_be_opened_keeps_no_instance(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass tries again, and root has 128 instances by default."""
    before = instances()

    def fail(self: Inotify, path: str, mask: int) -> int:
        raise OSError(errno.ENOMEM, "no memory")

    monkeypatch.setattr(Inotify, "add", fail)
    with pytest.raises(OSError, match="no memory"):
        KubepodsFinder(mount, "/").open()
    assert instances() == before
