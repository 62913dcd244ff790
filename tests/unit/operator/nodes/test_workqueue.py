import asyncio
import random
from contextlib import suppress

from numapin_daemon.backoff import Backoff
from numapin_operator.nodes.workqueue import WorkQueue
from support.values.operator import is_idle


async def test_a_key_added_twice_is_given_out_once() -> None:
    queue = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [await queue.take(), await queue.take()] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    assert is_idle(queue)


async def test_a_key_is_never_with_two_workers() -> None:
    queue = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.add("a")
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()
    queue.done("a")
    assert await second == "a"


async def test_waiting_workers_get_keys_in_order() -> None:
    queue = WorkQueue()
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in ("a", "b", "c"):
        queue.add(key)
    assert await asyncio.gather(*workers) == ["a", "b", "c"]


async def test_a_cancelled_worker_loses_no_key() -> None:
    queue = WorkQueue()
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"
    with suppress(asyncio.CancelledError):
        await first


class LongestJitter(random.Random):
    """Every wait is as long as it may be."""

    def uniform(self, a: float, b: float) -> float:
        return b


def quick_backoff() -> Backoff:
    return Backoff(base_seconds=0.001, cap_seconds=0.008, jitter=LongestJitter())


async def test_a_key_that_failed_comes_back_later_each_time() -> None:
    queue = WorkQueue(quick_backoff)
    queue.add("a")
    delays = []
    for _ in range(6):
        assert await queue.take() == "a"
        delays.append(queue.failed("a"))
        assert not is_idle(queue)
    assert delays == [0.001, 0.002, 0.004, 0.008, 0.008, 0.008]


async def test_success_forgets_failures() -> None:
    queue = WorkQueue(quick_backoff)
    for _ in range(5):
        queue.add("a")
        await queue.take()
        queue.failed("a")
    await queue.take()
    queue.done("a")
    queue.add("a")
    await queue.take()
    assert queue.failed("a") == 0.001


async def test_one_key_does_not_delay_another() -> None:
    queue = WorkQueue(quick_backoff)
    for _ in range(3):
        queue.add("a")
        await queue.take()
        queue.failed("a")
    queue.add("b")
    assert await queue.take() == "b"
    assert queue.failed("b") == 0.001


async def test_the_delay_is_bounded() -> None:
    queue = WorkQueue()
    queue.add("a")
    for _ in range(100):
        await queue.take()
        assert queue.failed("a") <= 30
        queue.add("a")


async def test_an_added_key_does_not_wait_for_its_back_off() -> None:
    queue = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.failed("a")
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert is_idle(queue)
