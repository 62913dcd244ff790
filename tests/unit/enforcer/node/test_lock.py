"""One process at a time has the node's lock."""

import asyncio
import threading
from pathlib import Path

import pytest

from numapin_enforcer.node.lock import (
    POLL_SECONDS,
    POLLS,
    NodeLock,
    acquire_from_standby,
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
    ended.set()
    await clock.advance((POLLS + 1) * POLL_SECONDS)
    await waiting
    assert caplog.messages == ["another enforcer runs on this node"]


async def test_a_lock_that_cannot_be_created_does_not_stop_an_enforcer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    await wait_for_lock(NodeLock(tmp_path / "file"), asyncio.Event(), ManualClock())
    assert caplog.messages == ["the node's lock cannot be taken"]
