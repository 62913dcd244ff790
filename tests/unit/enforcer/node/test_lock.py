"""One process at a time has the node's lock."""

import threading
from pathlib import Path

import pytest

from numapin_enforcer.node.lock import NodeLock


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
