import asyncio
import random
from contextlib import suppress

from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.queues.workqueue import NEVER_SORTED_OUT, URGENT_IN_A_ROW, WorkQueue
from support.fakes.manual_clock import ManualClock
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
    queue = WorkQueue(news_seconds=0.0)
    queue.add("a")
    for _ in range(100):
        await queue.take()
        assert queue.failed("a") <= 30
        queue.add("a")


async def test_news_shorten_a_back_off() -> None:
    queue = WorkQueue(endless_backoff, news_seconds=0.001)
    queue.add("a")
    await queue.take()
    assert queue.failed("a") == 3600
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert is_idle(queue)


async def test_news_during_the_work_shorten_the_back_off_as_well() -> None:
    queue = WorkQueue(endless_backoff, news_seconds=0.001)
    queue.add("a")
    await queue.take()
    queue.add("a")
    assert queue.failed("a") == 0.001
    assert await queue.take() == "a"


async def test_a_stream_of_news_does_not_try_a_failed_key_again_with_each() -> None:
    queue = WorkQueue(endless_backoff, news_seconds=60.0)
    queue.add("a")
    await queue.take()
    queue.failed("a")
    await assert_delayed(queue, news=100)


async def test_news_do_not_shorten_what_the_server_asked_for() -> None:
    queue = WorkQueue(quick_backoff, news_seconds=0.001)
    queue.add("a")
    await queue.take()
    assert queue.failed("a", retry_after_seconds=30) >= 30
    await assert_delayed(queue, news=100)


async def test_news_during_the_work_do_not_shorten_what_the_server_asked_for() -> None:
    queue = WorkQueue(quick_backoff, news_seconds=0.001)
    queue.add("a")
    await queue.take()
    queue.add("a", urgent=True)
    assert queue.failed("a", retry_after_seconds=30) >= 30
    await assert_delayed(queue, news=100)


async def test_each_turn_of_the_loop_gives_out_one_key_at_most() -> None:
    queue = WorkQueue()
    for number in range(20):
        queue.add(f"node-{number}")
    workers = [asyncio.create_task(queue.take()) for _ in range(16)]
    while not all(worker.done() for worker in workers):
        before = sum(worker.done() for worker in workers)
        await asyncio.sleep(0)
        assert sum(worker.done() for worker in workers) <= before + 1


async def test_urgent_keys_come_before_others() -> None:
    queue = WorkQueue()
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add("new")
    queue.add("new", urgent=True)
    queue.add("c", urgent=True)
    queue.add("c")
    assert await take_all(queue) == ["new", "c", "a", "b"]


async def test_a_delayed_or_busy_key_stays_urgent() -> None:
    queue = WorkQueue(news_seconds=0.0)
    queue.add("busy")
    queue.add("failed")
    await queue.take()
    await queue.take()
    queue.failed("failed")
    queue.add("failed", urgent=True)
    queue.add("busy", urgent=True)
    queue.add("busy")
    queue.add("other")
    queue.done("busy")
    await asyncio.sleep(0.001)
    assert await take_all(queue) == ["busy", "failed", "other"]


async def test_urgent_keys_do_not_starve_others() -> None:
    queue = WorkQueue()
    for key in ("a", "b"):
        queue.add(key)
    taken = []
    for number in range(2 * URGENT_IN_A_ROW + 2):
        queue.add(f"new {number}", urgent=True)
        queue.add(f"newer {number}", urgent=True)
        taken.append(await queue.take())
    assert [number for number, key in enumerate(taken) if key in ("a", "b")] == [
        URGENT_IN_A_ROW,
        2 * URGENT_IN_A_ROW + 1,
    ]


async def test_a_key_is_given_out_at_its_time() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock=clock)
    taken = asyncio.create_task(queue.take())
    queue.add("later", at=clock.monotonic() + 20)
    queue.add("a", at=clock.monotonic() + 99)
    queue.add("a", at=clock.monotonic() + 10)
    await clock.advance(9)
    assert not taken.done()
    await clock.advance(1)
    assert taken.result() == "a"
    queue.done("a")
    again = asyncio.create_task(queue.take())
    await clock.advance(10)
    assert again.result() == "later"
    idle = asyncio.create_task(queue.take())
    await clock.advance(1000)
    assert not idle.done(), "the first time of `a` was replaced"
    idle.cancel()


async def test_a_time_is_forgotten_when_the_key_is_given_out_before() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock=clock)
    queue.add("a", at=clock.monotonic() + 10)
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    idle = asyncio.create_task(queue.take())
    await clock.advance(1000)
    assert not idle.done()
    idle.cancel()


async def test_a_time_that_comes_while_a_worker_has_the_key_is_kept() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock=clock)
    queue.add("a")
    assert await queue.take() == "a"
    queue.add("a", at=clock.monotonic() + 1)
    other = asyncio.create_task(queue.take())
    await clock.advance(2)
    assert not other.done()
    queue.done("a")
    await clock.run_tasks()
    assert other.result() == "a"


async def test_times_that_count_no_more_are_not_kept() -> None:
    """A node with a move to come is planned again with each event, a day long."""
    queue = WorkQueue(clock=ManualClock())
    for plan in range(10_000):
        queue.add(f"node-{plan % 10}")
        key = await queue.take()
        queue.add(key, at=90_000.0 + plan % 3)
        queue.done(key)
    assert len(queue._due) <= 2 * 10 + NEVER_SORTED_OUT


def endless_backoff() -> Backoff:
    return Backoff(base_seconds=3600, cap_seconds=3600, jitter=LongestJitter())


async def assert_delayed(queue: WorkQueue, news: int) -> None:
    worker = asyncio.create_task(queue.take())
    for _ in range(news):
        queue.add("a", urgent=True)
        await asyncio.sleep(0)
    assert not worker.done()
    worker.cancel()


async def take_all(queue: WorkQueue) -> list[str]:
    taken = []
    while queue._urgent or queue._others:
        taken.append(await queue.take())
    return taken
