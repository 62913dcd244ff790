"""A folder tree replaces cgroupfs: inotify reports the same events for both."""

import ctypes
import errno
import select
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.watch.new_pods import MOST_RECENT, NewPodWatch

CONTAINER = "a" * 64
Q_OVERFLOW = struct.pack("iIII", -1, 0x4000, 0, 0)


def make(folder: Path) -> Path:
    """A cgroup with the file that counts, as the kernel makes both at once."""
    aside = folder.parent.parent / "aside"
    aside.mkdir(parents=True)
    (aside / "cpuset.cpus").write_text("")
    return aside.rename(folder)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    (tmp_path / "kubepods" / "burstable").mkdir(parents=True)
    (tmp_path / "kubepods" / "memory.events").write_text("")
    make(tmp_path / "kubepods" / "podold")
    return tmp_path


@pytest.fixture
def watch(mount: Path) -> Iterator[NewPodWatch]:
    made = NewPodWatch(mount, CgroupNaming(Driver.CGROUPFS))
    yield made
    made.close()


def test_pods_are_reported_and_nothing_in_them(mount: Path, watch: NewPodWatch) -> None:
    assert not select.select([watch], [], [], 0)[0]
    for pod in ("kubepods/pod1", "kubepods/burstable/pod2"):
        make(mount / pod)
        make(mount / pod / CONTAINER)
        make(mount / pod / CONTAINER / "nested")
    (mount / "kubepods" / "other").mkdir()
    assert select.select([watch], [], [], 0)[0]
    assert watch.take() == ("kubepods/pod1", "kubepods/burstable/pod2")
    assert watch.take() == ()
    assert not select.select([watch], [], [], 0)[0]


def test_only_a_write_to_the_cpuset_of_a_new_pod_is_reported(
    mount: Path, watch: NewPodWatch
) -> None:
    new = make(mount / "kubepods" / "pod1")
    watch.take()
    for name in ("memory.events", "cgroup.procs"):
        (new / name).write_text("x")
    (mount / "kubepods" / "memory.events").write_text("x")
    (mount / "kubepods" / "podold" / "cpuset.cpus").write_text("1")
    assert not select.select([watch], [], [], 0)[0]
    (new / "cpuset.cpus").write_text("0-1")
    assert watch.take() == ("kubepods/pod1",)


def test_the_pods_of_a_class_that_is_made_later_are_reported(
    mount: Path, watch: NewPodWatch
) -> None:
    make(mount / "kubepods" / "besteffort")
    make(mount / "kubepods" / "besteffort" / "pod3")
    assert watch.take() == ("kubepods/besteffort/pod3",)
    make(mount / "kubepods" / "besteffort" / "pod4")
    assert watch.take() == ("kubepods/besteffort/pod4",)


def test_only_the_newest_pods_are_watched_and_none_that_is_gone(
    mount: Path, watch: NewPodWatch
) -> None:
    pods = [make(mount / "kubepods" / f"pod{number}") for number in range(MOST_RECENT + 1)]
    assert len(watch.take()) == MOST_RECENT + 1
    for pod in pods:
        (pod / "cpuset.cpus").write_text("1")
    assert len(watch.take()) == MOST_RECENT
    (pods[1] / "cpuset.cpus").unlink()
    pods[1].rmdir()
    watch.take()
    assert "kubepods/pod1" not in watch._recent
    assert len(watch._pods) == len(watch._recent) == MOST_RECENT - 1


def test_after_lost_events_every_pod_is_reported(
    mount: Path, watch: NewPodWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(mount / "kubepods" / "burstable" / "pod2")
    monkeypatch.setattr(watch._inotify, "read", lambda: Q_OVERFLOW)
    assert set(watch.take()) == {"kubepods/podold", "kubepods/burstable/pod2"}


def test_an_instance_is_tried_for_until_there_is_one(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse(_: int) -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(libc, "inotify_init1", refuse)
        patched.setattr(ctypes, "CDLL", lambda *_, **__: libc)
        watch = NewPodWatch(mount, CgroupNaming(Driver.CGROUPFS))
        assert watch.problem.startswith("new pods may be fenced late: ")
        assert watch.problem.endswith("raise fs.inotify.max_user_instances")
        assert watch.take() == ()
    assert watch.take() == ("kubepods/podold",)
    assert watch.problem == ""
    watch.close()


def test_the_slices_of_systemd_are_watched(tmp_path: Path) -> None:
    burstable = tmp_path / "kubepods.slice" / "kubepods-burstable.slice"
    burstable.mkdir(parents=True)
    watch = NewPodWatch(tmp_path, CgroupNaming(Driver.SYSTEMD))
    new = "kubepods-burstable-pod1_2.slice"
    make(burstable / new)
    assert watch.take() == (f"kubepods.slice/kubepods-burstable.slice/{new}",)
    watch.close()
