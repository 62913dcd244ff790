"""Memory pages move in a thread, and the event loop goes on."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.memory.mover import PATIENCE_SECONDS, MemoryMover
from numapin_enforcer.cgroups.tree import Cgroup, Tree
from numapin_enforcer.cgroups.write import Step, Write
from support.fakes.manual_clock import ManualClock

MOVE = Write("kubepods/pod1/c", MemSet((1,)), Step.MOVE_MEMORY, may_block=True)


class SlowTree:
    """A tree whose writes wait until they may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.pass_one = threading.Semaphore(0)
        self.written: list[Write] = []
        self.failure: CgroupRefusedError | None = None

    def read(self) -> Tree:
        raise AssertionError("the mover does not read")

    def read_one(self, path: str) -> Cgroup:
        every = CpuSet(range(2)), MemSet((0, 1))
        return Cgroup(path, *every, *every)

    def read_effective_cpus(self, path: str) -> CpuSet:
        raise AssertionError("the mover checks no CPUs")

    def has_tasks(self, path: str) -> bool:
        raise AssertionError("the mover does not look for tasks")

    def read_numa_stat(self, path: str) -> str:
        return ""

    def read_hugetlb_stat(self, path: str) -> str:
        return ""

    def write(self, write: Write) -> None:
        while not self.may_go_on.is_set() and not self.pass_one.acquire(timeout=0.01):
            pass
        if self.failure is not None:
            raise self.failure
        self.written.append(write)


@pytest.fixture
async def mover(
    wake: asyncio.Event, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[MemoryMover]:
    made = MemoryMover(wake, SavedMems(tmp_path), clock)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def become_slow(mover: MemoryMover, clock: ManualClock) -> None:
    await clock.until(clock.pending_seconds)
    await clock.advance(PATIENCE_SECONDS)
    assert mover.slow


async def test_a_move_that_takes_long_is_reported_as_slow(
    mover: MemoryMover, wake: asyncio.Event, clock: ManualClock
) -> None:
    tree = SlowTree()
    mover.want((MOVE,), tree)
    started = mover.finishes_soon
    await become_slow(mover, clock)
    assert wake.is_set()
    wake.clear()
    assert mover.slow == (MOVE,)
    assert (started, mover.finishes_soon) == (True, False)
    mover.want((MOVE, MOVE), tree)
    tree.may_go_on.set()
    await wake.wait()
    await clock.until(lambda: not mover.slow)
    assert tree.written == [MOVE]
    assert not mover.failures


async def test_a_status_does_not_wait_for_moves_that_come_again_and_again(
    mover: MemoryMover, wake: asyncio.Event, clock: ManualClock
) -> None:
    """The kernel accepts each write, but the memory stays where it is."""
    tree = SlowTree()
    tree.may_go_on.set()
    mover.want((MOVE,), tree)
    while mover.finishes_soon:
        await wake.wait()
        wake.clear()
        await clock.advance(PATIENCE_SECONDS / 4)
        mover.want((MOVE,), tree)
    assert len(tree.written) > 1


def on(path: str, numa_node: int = 1) -> Write:
    return Write(path, MemSet((numa_node,)), Step.MOVE_MEMORY, may_block=True)


async def test_a_slow_batch_reports_what_is_left(
    mover: MemoryMover, wake: asyncio.Event, clock: ManualClock
) -> None:
    tree, batch = SlowTree(), (on("a"), on("b"), on("c"))
    mover.want(batch, tree)
    await become_slow(mover, clock)
    assert mover.slow == batch
    wake.clear()
    tree.pass_one.release()
    await wake.wait()
    await clock.until(lambda: mover.slow == batch[1:])
    tree.may_go_on.set()
    await clock.until(lambda: mover.slow == ())
    assert tree.written == list(batch)


async def test_a_write_that_is_no_longer_wanted_is_skipped(
    mover: MemoryMover, clock: ManualClock
) -> None:
    """A newer assignment arrives while a move is under way."""
    tree = SlowTree()
    mover.want((on("a"), on("b"), on("c")), tree)
    await become_slow(mover, clock)
    mover.want((on("a", 0), on("c")), tree)
    tree.may_go_on.set()
    await clock.until(lambda: mover.slow == ())
    assert tree.written == [on("a"), on("c")]
    mover.want((on("a", 0),), tree)
    await clock.until(lambda: tree.written[2:] == [on("a", 0)])


async def test_nothing_more_is_moved_once_no_write_is_wanted(
    mover: MemoryMover, clock: ManualClock
) -> None:
    tree = SlowTree()
    mover.want((on("a"), on("b")), tree)
    await become_slow(mover, clock)
    mover.want((), tree)
    tree.may_go_on.set()
    await clock.until(lambda: mover.slow == ())
    assert tree.written == [on("a")]


def test_the_process_ends_while_a_move_hangs(tmp_path: Path) -> None:
    """In a process of its own: the interpreter must not wait for the thread either."""
    script = """
import asyncio, sys, threading
from pathlib import Path
from test_mover import MOVE, SlowTree
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.memory.mover import MemoryMover

class Stuck(SlowTree):
    def write(self, write):
        asked.set()
        threading.Event().wait()

async def main():
    mover = MemoryMover(asyncio.Event(), SavedMems(Path(sys.argv[1])))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mover.run())
        mover.want((MOVE,), Stuck())
        await asyncio.to_thread(asked.wait)
        task.cancel()

asked = threading.Event()
asyncio.run(main())
print("ended")
"""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("ended\n", "", 0)


async def test_an_unexpected_error_is_reported_and_the_next_batch_is_tried(
    mover: MemoryMover, wake: asyncio.Event, clock: ManualClock
) -> None:
    class Broken(SlowTree):
        def write(self, write: Write) -> None:
            raise ZeroDivisionError

    mover.want((MOVE,), Broken())
    await wake.wait()
    assert [one.reason for one in mover.obstacles()] == [Reason.INTERNAL_ERROR]
    tree = SlowTree()
    tree.may_go_on.set()
    mover.want((MOVE,), tree)
    await clock.advance(60)
    await clock.until(lambda: not mover.obstacles())
    assert tree.written == [MOVE]


async def test_a_refused_move_is_reported_until_no_move_is_wanted(
    mover: MemoryMover, wake: asyncio.Event
) -> None:
    tree = SlowTree()
    tree.failure = CgroupRefusedError(MOVE.path, "1", 22, "it is not there (EINVAL)")
    tree.may_go_on.set()
    mover.want((MOVE,), tree)
    await wake.wait()
    assert [str(one.error) for one in mover.failures] == [
        "writing '1' to kubepods/pod1/c: it is not there (EINVAL)"
    ]
    tree.failure = None
    mover.want((MOVE,), tree)
    assert not mover._batch
    mover.want((), tree)
    assert mover.failures == ()
