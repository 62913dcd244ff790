"""A file is replaced as a whole, or left as it is."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from numapin_daemon import atomic_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "content.json"


@pytest.mark.parametrize("before", [None, b"", b"something much longer"])
def test_the_new_content_is_there_and_nothing_else(path: Path, before: bytes | None) -> None:
    if before is not None:
        path.write_bytes(before)
    atomic_file.replace(path, b"new\n")
    assert path.read_bytes() == b"new\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("given", "mode"), [({}, 0o644), ({"mode": 0o600}, 0o600)])
def test_the_mode_does_not_depend_on_the_umask(
    path: Path, given: dict[str, int], mode: int
) -> None:
    before = os.umask(0o077)
    try:
        atomic_file.replace(path, b"new", **given)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_reader_of_the_old_content_keeps_it(path: Path) -> None:
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        atomic_file.replace(path, b"new")
        assert reader.read() == b"old"


def test_what_a_crash_left_is_overwritten(path: Path) -> None:
    path.with_suffix(".new").write_bytes(b"half of something long")
    atomic_file.replace(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_rename_leaves_nothing_behind(path: Path) -> None:
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        atomic_file.replace(path, b"new")
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_missing_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        atomic_file.replace(path.parent / "missing" / "file", b"new")


def test_a_full_disk_leaves_the_old_content(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"old")

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        atomic_file.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_on_disk_before_its_name_and_its_name_before_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"old")
    synced: list[tuple[str, bytes]] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder" if is_folder else "file", path.read_bytes()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    atomic_file.replace(path, b"new")
    assert synced == [("file", b"old"), ("folder", b"new")]


def test_a_second_process_is_refused_while_the_first_one_writes(path: Path) -> None:
    path.write_bytes(b"old")
    with path.with_suffix(".new").open("wb") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        first.write(b"half")
        first.flush()
        with pytest.raises(BlockingIOError):
            atomic_file.replace(path, b"new")
        assert path.with_suffix(".new").read_bytes() == b"half"
    assert path.read_bytes() == b"old"


def test_a_file_that_the_first_process_has_renamed_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process opened the file just before the first one finished."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(b"first")
    lock = fcntl.flock

    def lock_too_late(descriptor: int, operation: int) -> None:
        if not path.exists():
            temporary.rename(path)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    with temporary.open("rb") as first:
        atomic_file.replace(path, b"second")
        assert first.read() == b"first"
    assert path.read_bytes() == b"second"


def test_a_regular_file_is_read_up_to_its_limit(path: Path) -> None:
    path.write_bytes(b"12345")
    assert atomic_file.read(path, most_bytes=5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        atomic_file.read(path, most_bytes=4)


def test_what_is_no_regular_file_is_refused_and_never_waited_for(path: Path) -> None:
    os.mkfifo(path)
    for one in (path, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            atomic_file.read(one, most_bytes=10)
