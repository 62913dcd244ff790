"""A folder tree replaces cgroupfs: inotify reports the same events for both."""

import ctypes
import errno
import os
import select
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.watch.inotify import MOST_READS, CgroupWatch, Changes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    kubepods = tmp_path / "kubepods"
    (kubepods / "burstable").mkdir(parents=True)
    return kubepods


@pytest.fixture
def watch(root: Path) -> Iterator[CgroupWatch]:
    with CgroupWatch(root.parent, "kubepods") as made:
        assert not made.read().appeared
        yield made


def is_readable(watch: CgroupWatch) -> bool:
    """Whether events are queued."""
    return bool(select.select([watch], [], [], 0)[0])


def test_a_new_folder_is_reported(root: Path, watch: CgroupWatch) -> None:
    (root / "burstable" / "pod1").mkdir()
    assert watch.read().appeared == ("kubepods/burstable/pod1",)


def test_folders_created_before_their_parent_was_watched_are_reported(
    root: Path, watch: CgroupWatch
) -> None:
    (root / "pod1" / "c1" / "nested").mkdir(parents=True)
    pod = "kubepods/pod1"
    assert watch.read().appeared == (pod, f"{pod}/c1", f"{pod}/c1/nested")


def test_a_folder_inside_a_new_folder_is_reported_later(root: Path, watch: CgroupWatch) -> None:
    (root / "pod1").mkdir()
    watch.read()
    (root / "pod1" / "c1").mkdir()
    assert watch.read().appeared == ("kubepods/pod1/c1",)


def test_a_deleted_folder_is_reported_once(root: Path, watch: CgroupWatch) -> None:
    (root / "pod1").mkdir()
    watch.read()
    (root / "pod1").rmdir()
    assert watch.read().vanished == ("kubepods/pod1",)
    assert watch.read().vanished == ()


def test_a_folder_created_and_deleted_is_reported_as_vanished(
    root: Path, watch: CgroupWatch
) -> None:
    (root / "pod1").mkdir()
    (root / "pod1").rmdir()
    changes = watch.read()
    assert (changes.appeared, changes.vanished) == ((), ("kubepods/pod1",))


def test_a_folder_deleted_and_created_again_is_reported_as_appeared(
    root: Path, watch: CgroupWatch
) -> None:
    (root / "pod1").mkdir()
    watch.read()
    (root / "pod1").rmdir()
    (root / "pod1").mkdir()
    changes = watch.read()
    assert (changes.appeared, changes.vanished) == (("kubepods/pod1",), ())


@pytest.mark.parametrize("name", ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition"])
def test_a_written_cpuset_file_is_reported(root: Path, watch: CgroupWatch, name: str) -> None:
    (root / "burstable" / name).write_text("0-3")
    assert watch.read().written == ("kubepods/burstable",)


@pytest.mark.parametrize("name", ["cgroup.procs", "cpu.weight", "tasks"])
def test_writes_to_other_files_are_not_reported(root: Path, watch: CgroupWatch, name: str) -> None:
    (root / "burstable" / name).write_text("1")
    assert watch.read().written == ()


@pytest.mark.parametrize("name", ["memory.events", "cgroup.events", "cgroup.procs"])
def test_events_that_do_not_matter_are_dropped_when_they_are_collected(
    root: Path, watch: CgroupWatch, name: str
) -> None:
    (root / "burstable" / name).write_text("1")
    assert is_readable(watch)
    assert not watch.collect()
    assert not is_readable(watch)


def test_what_was_collected_is_reported_once_with_what_came_later(
    root: Path, watch: CgroupWatch
) -> None:
    (root / "pod1").mkdir()
    assert watch.collect()
    assert watch.collected == Changes(("kubepods/pod1",))
    assert watch.collect()
    (root / "burstable" / "cpuset.cpus").write_text("1")
    changes = watch.read()
    assert (changes.appeared, changes.written) == (("kubepods/pod1",), ("kubepods/burstable",))
    assert not watch.collect()
    assert watch.read() == Changes()


def test_an_overflow_that_was_collected_is_reported(
    root: Path, watch: CgroupWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow = struct.pack("iIII", -1, 0x4000, 0, 0)
    answers = iter([overflow])

    def read(_descriptor: int, _size: int) -> bytes:
        if (answer := next(answers, None)) is None:
            raise BlockingIOError
        return answer

    (root / "pod1").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", read)
        assert watch.collect()
        assert watch.collect()
    changes = watch.read()
    assert changes.overflowed
    assert "kubepods/pod1" in changes.appeared
    assert not watch.read().overflowed


def test_an_error_while_collecting_leads_to_a_new_list_of_the_tree(
    root: Path, watch: CgroupWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.ENOMEM)
        return -1

    (root / "pod1" / "c1").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(watch._inotify.libc, "inotify_add_watch", refuse)
        assert watch.collect()
    changes = watch.read()
    assert changes.overflowed
    assert "kubepods/pod1/c1" in changes.appeared


def test_creating_or_deleting_the_root_requires_a_full_read(root: Path, watch: CgroupWatch) -> None:
    shutil.rmtree(root)
    assert watch.read().overflowed
    (root / "besteffort").mkdir(parents=True)
    changes = watch.read()
    assert changes.overflowed
    assert changes.appeared == ("kubepods", "kubepods/besteffort")
    (root / "besteffort" / "cpuset.cpus").write_text("1")
    assert watch.read().written == ("kubepods/besteffort",)


def test_deleted_folders_are_forgotten(root: Path, watch: CgroupWatch) -> None:
    for number in range(20):
        (root / f"pod{number}" / "c").mkdir(parents=True)
        watch.read()
        shutil.rmtree(root / f"pod{number}")
        watch.read()
    assert set(watch._watches) == {"", "kubepods", "kubepods/burstable"}
    assert set(watch._paths.values()) == set(watch._watches)


def test_siblings_of_the_root_are_not_reported(root: Path, watch: CgroupWatch) -> None:
    (root.parent / "system.slice").mkdir()
    (root.parent / "system.slice" / "cpuset.cpus").write_text("1")
    changes = watch.read()
    assert (changes.appeared, changes.written, changes.overflowed) == ((), (), False)


def test_an_overflow_is_reported_and_the_tree_is_listed_again(
    root: Path, watch: CgroupWatch
) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    (root / "pod0").mkdir()
    (root / "lost").mkdir()
    watch.read()
    for number in range(limit // 2 + 100):
        (root / "burstable" / f"f{number}").touch()
        (root / "burstable" / f"f{number}").unlink()
    (root / "lost").rmdir()
    (root / "burstable" / "pod1").mkdir()
    changes = watch.read()
    assert changes.overflowed
    assert {"kubepods/pod0", "kubepods/burstable/pod1"} <= set(changes.appeared)
    assert set(watch._watches) == {"", *changes.appeared}


def test_folders_below_a_late_parent_are_watched_once_a_rescan_found_them(tmp_path: Path) -> None:
    root = tmp_path / "kubelet" / "kubepods"
    with CgroupWatch(tmp_path, "kubelet/kubepods") as watch:
        root.mkdir(parents=True)
        assert not watch.read().appeared
        watch.cover(["kubelet/kubepods"])
        (root / "pod1").mkdir()
        assert watch.read().appeared == ("kubelet/kubepods/pod1",)
        (root / "pod1" / "cpuset.cpus").write_text("1")
        assert watch.read().written == ("kubelet/kubepods/pod1",)
        root.rename(tmp_path / "kubelet" / "other")
        assert watch.read().overflowed


def test_cover_neither_reports_nor_loses_an_event(root: Path, watch: CgroupWatch) -> None:
    (root / "pod1").mkdir()
    watch.cover(["kubepods", "kubepods/burstable", "kubepods/pod1", "kubepods/gone"])
    changes = watch.read()
    assert (changes.appeared, changes.vanished) == (("kubepods/pod1",), ())
    watch.cover(["kubepods", "kubepods/burstable", "kubepods/pod1"])
    assert watch.read().appeared == ()


def test_a_flood_of_events_is_read_in_parts(
    root: Path, watch: CgroupWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are made as fast as they are read: each read causes one more."""
    real, count = os.read, 0

    def read(descriptor: int, size: int) -> bytes:
        nonlocal count
        count += 1
        (root / f"pod{count}").mkdir()
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    first, second = watch.read().appeared, watch.read().appeared
    assert first == tuple(f"kubepods/pod{number}" for number in range(1, MOST_READS + 1))
    assert len(second) == MOST_READS


def test_a_refused_watch_is_reported_with_the_remedy(
    root: Path, watch: CgroupWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(watch._inotify.libc, "inotify_add_watch", full)
        (root / "pod1").mkdir()
        assert watch.read().appeared == ("kubepods/pod1",)
        assert watch.problem.startswith("kubepods/pod1 and its descendants are not watched")
        assert watch.problem.endswith("raise fs.inotify.max_user_watches")
    watch.cover(["kubepods", "kubepods/pod1"])
    assert watch.problem == ""
    (root / "pod1" / "c1").mkdir()
    assert watch.read().appeared == ("kubepods/pod1/c1",)


def test_without_an_inotify_instance_nothing_is_reported_until_one_is_free(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse(_: int) -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(libc, "inotify_init1", refuse)
        patched.setattr(ctypes, "CDLL", lambda *_, **__: libc)
        watch = CgroupWatch(root.parent, "kubepods")
        with watch:
            assert watch.problem.startswith("no cgroup is watched, all are only rescanned")
            assert watch.problem.endswith("raise fs.inotify.max_user_instances")
            (root / "pod1").mkdir()
            assert watch.read().appeared == ()
            watch.cover(["kubepods", "kubepods/pod1"])
            assert watch.problem
            patched.undo()
            watch.cover(["kubepods", "kubepods/pod1"])
            assert watch.problem == ""
            assert not select.select([watch], [], [], 0)[0]
            (root / "pod1" / "c1").mkdir()
            assert select.select([watch], [], [], 0)[0]
            assert watch.read().appeared == ("kubepods/pod1/c1",)
            assert not select.select([watch], [], [], 0)[0]
