"""One process at a time has the node's lock."""

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest

from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.node.lock_keeper import (
    POLL_SECONDS,
    POLLS,
    LockLostError,
    acquire_from_standby,
    keep_lock,
    wait_for_lock,
)
from support.fakes.manual_clock import ManualClock


@pytest.fixture
def first(tmp_path: Path) -> NodeLock:
    made = NodeLock(tmp_path / "state")
    made.create()
    return made


@pytest.fixture
def second(first: NodeLock) -> NodeLock:
    """Another open file, as another process has it. Source: flock(2)."""
    return NodeLock(first.path.parent)


def test_a_lock_that_was_never_created_cannot_be_acquired(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        NodeLock(tmp_path).try_acquire()
    with pytest.raises(FileNotFoundError):
        NodeLock(tmp_path).acquire()


def test_only_one_has_the_lock_until_it_is_released(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    assert not first.try_acquire()


def test_creating_it_again_does_not_release_it(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    second.create()
    assert not second.try_acquire()


def test_releasing_what_was_never_acquired_is_harmless(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    second.release()
    assert not second.try_acquire()


def test_acquire_waits_for_the_release(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    acquired = threading.Event()

    def acquire() -> None:
        second.acquire()
        acquired.set()

    waiting = threading.Thread(target=acquire)
    waiting.start()
    assert not acquired.is_set()
    first.release()
    waiting.join(20)
    assert acquired.is_set()
    assert not first.try_acquire()


async def test_an_enforcer_acquires_the_lock_when_the_standby_releases_it(
    first: NodeLock, second: NodeLock
) -> None:
    clock = ManualClock()
    assert first.try_acquire()
    waiting = asyncio.create_task(acquire_from_standby(second, clock))
    await clock.advance(10 * POLL_SECONDS)
    assert not waiting.done()
    first.release()
    await clock.advance(POLL_SECONDS)
    assert await waiting


async def test_the_lock_of_a_running_enforcer_is_not_acquired(
    first: NodeLock, second: NodeLock
) -> None:
    clock = ManualClock()
    assert first.try_acquire()
    waiting = asyncio.create_task(acquire_from_standby(second, clock))
    await clock.advance((POLLS + 1) * POLL_SECONDS)
    assert not await waiting


async def test_an_enforcer_waits_for_another_until_it_must_end(
    first: NodeLock, second: NodeLock, caplog: pytest.LogCaptureFixture
) -> None:
    clock, ended = ManualClock(), asyncio.Event()
    assert first.try_acquire()
    waiting = asyncio.create_task(wait_for_lock(second, ended, clock))
    await clock.run_tasks()
    await clock.advance(3 * (POLLS + 1) * POLL_SECONDS)
    ended.set()
    await clock.advance((POLLS + 1) * POLL_SECONDS)
    await waiting
    assert caplog.messages == [
        "another enforcer runs on this node, this one waits until it ends"
    ], "said once: the last line of the log"
    assert "numapin may be installed twice" in vars(caplog.records[0])["remedy"]


async def test_a_lock_that_cannot_be_created_does_not_stop_an_enforcer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    await wait_for_lock(NodeLock(tmp_path / "file"), asyncio.Event(), ManualClock())
    assert caplog.messages == ["the node's lock cannot be taken"]


def test_only_root_may_open_the_lock(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "writer.lock").touch(0o644)
    for folder in (state, tmp_path / "new"):
        made = NodeLock(folder)
        made.create()
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (folder, made.path)]
        assert modes == [0o700, 0o600]


def test_a_deleted_lock_is_not_mistaken_for_the_one_that_others_open(
    first: NodeLock, second: NodeLock
) -> None:
    assert first.try_acquire()
    assert not second.try_acquire()
    assert not first.replaced()
    first.path.unlink()
    assert first.replaced()
    with pytest.raises(FileNotFoundError):
        second.try_acquire()
    second.create()
    assert second.try_acquire()
    assert not first.try_acquire()


async def test_a_deleted_lock_is_taken_again(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    first.path.unlink()
    await keep_lock(first, ManualClock())
    assert not first.replaced()
    assert not second.try_acquire()


async def test_an_enforcer_whose_lock_another_has_must_end(
    first: NodeLock, second: NodeLock
) -> None:
    clock = ManualClock()
    assert first.try_acquire()
    first.path.unlink()
    second.create()
    assert second.try_acquire()
    keeping = asyncio.create_task(keep_lock(first, clock))
    await clock.advance((POLLS + 1) * POLL_SECONDS)
    with pytest.raises(LockLostError, match="another enforcer has it now"):
        await keeping


def test_a_waiting_standby_follows_a_replaced_lock(first: NodeLock, second: NodeLock) -> None:
    assert first.try_acquire()
    assert not second.try_acquire()
    acquired = threading.Event()

    def acquire() -> None:
        second.acquire()
        acquired.set()

    waiting = threading.Thread(target=acquire)
    waiting.start()
    third = NodeLock(first.path.parent)
    first.path.unlink()
    third.create()
    first.release()
    waiting.join(20)
    assert acquired.is_set()
    assert not third.try_acquire()


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_what_is_no_regular_file_is_no_lock(tmp_path: Path, kind: str) -> None:
    lock = NodeLock(tmp_path)
    if kind == "fifo":
        os.mkfifo(lock.path)
    elif kind == "folder":
        lock.path.mkdir()
    else:
        lock.path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"regular file|symbolic links"):
        lock.try_acquire()
