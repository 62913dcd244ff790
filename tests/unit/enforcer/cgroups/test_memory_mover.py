"""Memory that moves."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api.cpuset import MemSet
from numapin_enforcer.cgroups.memory_mover import Mover
from numapin_enforcer.cgroups.tree import CgroupRefusedError, Step, Tree, Write
from support.real.waiting import eventually

MOVE = Write("kubepods/pod1/c", MemSet((1,)), Step.MOVE_MEMORY, may_block=True)


class SlowTree:
    """A tree whose writes wait until they may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.pass_one = threading.Semaphore(0)
        self.written: list[Write] = []
        self.failure: CgroupRefusedError | None = None

    def read(self) -> Tree:
        raise AssertionError("nobody reads here")

    def write(self, write: Write) -> None:
        while not self.may_go_on.is_set() and not self.pass_one.acquire(timeout=0.01):
            pass
        if self.failure is not None:
            raise self.failure
        self.written.append(write)


@pytest.fixture
async def mover(wake: asyncio.Event) -> AsyncIterator[Mover]:
    made = Mover(wake, patience_seconds=0.05)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_memory_moves_beside_the_loop_and_slowness_is_told(
    mover: Mover, wake: asyncio.Event
) -> None:
    tree = SlowTree()
    mover.move((MOVE,), tree)
    settling = mover.settling
    await wake.wait()
    wake.clear()
    assert mover.slow == (MOVE,)
    assert (settling, mover.settling) == (True, False)
    mover.move((MOVE, MOVE), tree)
    tree.may_go_on.set()
    await wake.wait()
    await eventually(lambda: not mover.slow)
    assert tree.written == [MOVE]
    assert not mover.failures


async def test_a_status_does_not_wait_for_moves_that_come_again_and_again(
    mover: Mover, wake: asyncio.Event
) -> None:
    """The kernel takes the write, and memory is not where it should be all the same."""
    tree = SlowTree()
    tree.may_go_on.set()
    mover.move((MOVE,), tree)
    async with asyncio.timeout(10):
        while mover.settling:
            await wake.wait()
            wake.clear()
            mover.move((MOVE,), tree)
    assert len(tree.written) > 1


def on(path: str, numa_node: int = 1) -> Write:
    return Write(path, MemSet((numa_node,)), Step.MOVE_MEMORY, may_block=True)


async def test_of_a_slow_move_is_told_what_is_left(mover: Mover, wake: asyncio.Event) -> None:
    tree, batch = SlowTree(), (on("a"), on("b"), on("c"))
    mover.move(batch, tree)
    await eventually(lambda: mover.slow == batch)
    wake.clear()
    tree.pass_one.release()
    await wake.wait()
    await eventually(lambda: mover.slow == batch[1:])
    tree.may_go_on.set()
    await eventually(lambda: mover.slow == ())
    assert tree.written == list(batch)


async def test_what_is_to_be_elsewhere_by_now_is_not_moved_there(
    mover: Mover, wake: asyncio.Event
) -> None:
    """A newer assignment while a move is under way: no thread goes on with the older one."""
    tree = SlowTree()
    mover.move((on("a"), on("b"), on("c")), tree)
    await eventually(lambda: mover.slow)
    mover.move((on("a", 0), on("c")), tree)
    tree.may_go_on.set()
    await eventually(lambda: mover.slow == ())
    assert tree.written == [on("a"), on("c")]
    mover.move((on("a", 0),), tree)
    await eventually(lambda: tree.written[2:] == [on("a", 0)])


async def test_what_is_not_to_be_touched_any_more_is_left(mover: Mover) -> None:
    tree = SlowTree()
    mover.move((on("a"), on("b")), tree)
    await eventually(lambda: mover.slow)
    mover.move((), tree)
    tree.may_go_on.set()
    await eventually(lambda: mover.slow == ())
    assert tree.written == [on("a")]


def test_a_move_that_hangs_holds_up_no_end() -> None:
    """In a process of its own: the thread is one that even the interpreter does not wait for."""
    script = """
import asyncio, threading
from test_memory_mover import MOVE, SlowTree
from numapin_enforcer.cgroups.memory_mover import Mover

class Stuck(SlowTree):
    def write(self, write):
        asked.set()
        threading.Event().wait()

async def main():
    mover = Mover(asyncio.Event(), patience_seconds=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mover.run())
        mover.move((MOVE,), Stuck())
        await asyncio.to_thread(asked.wait)
        while not mover.slow:
            await asyncio.sleep(0.01)
        task.cancel()

asked = threading.Event()
asyncio.run(main())
print("ended")
"""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("ended\n", "", 0)


async def test_a_move_that_fails_unexpectedly_ends_the_mover(wake: asyncio.Event) -> None:
    mover = Mover(wake)
    task = asyncio.create_task(mover.run())

    class Broken(SlowTree):
        def write(self, write: Write) -> None:
            raise ZeroDivisionError

    mover.move((MOVE,), Broken())
    with pytest.raises(ZeroDivisionError):
        await task


async def test_memory_that_cannot_move_is_told_until_nothing_is_to_move(
    mover: Mover, wake: asyncio.Event
) -> None:
    tree = SlowTree()
    tree.failure = CgroupRefusedError(MOVE.path, "1", 22, "it is not there (EINVAL)")
    tree.may_go_on.set()
    mover.move((MOVE,), tree)
    await wake.wait()
    assert [str(one.error) for one in mover.failures] == [
        "writing '1' to kubepods/pod1/c: it is not there (EINVAL)"
    ]
    tree.failure = None
    mover.move((MOVE,), tree)
    assert not mover._batch
    mover.move((), tree)
    assert mover.failures == ()
