import asyncio
from contextlib import suppress

import pytest

from numapin_operator.nodes import workqueue
from numapin_operator.nodes.workqueue import WorkQueue


async def test_a_key_added_twice_is_given_out_once() -> None:
    queue = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [await queue.take(), await queue.take()] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    assert queue.idle


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


async def test_waiting_workers_get_keys_as_they_come() -> None:
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


async def test_failures_come_back_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue, "FIRST_DELAY_SECONDS", 0.001)
    queue = WorkQueue()
    queue.add("a")
    ceilings = []
    for attempt in range(4):
        assert await queue.take() == "a"
        delay = queue.failed("a")
        ceilings.append(0.0005 * 2**attempt <= delay <= 0.001 * 2**attempt)
        assert not queue.idle
    assert all(ceilings)


async def test_success_forgets_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue, "FIRST_DELAY_SECONDS", 0.001)
    queue = WorkQueue()
    for _ in range(5):
        queue.add("a")
        await queue.take()
        queue.failed("a")
    await queue.take()
    queue.done("a")
    queue.add("a")
    await queue.take()
    assert queue.failed("a") <= 0.001


async def test_the_delay_is_bounded() -> None:
    queue = WorkQueue()
    queue.add("a")
    for _ in range(100):
        await queue.take()
        assert queue.failed("a") <= workqueue.LONGEST_DELAY_SECONDS
        queue.add("a")


async def test_fresh_news_do_not_wait_for_a_failures_delay() -> None:
    queue = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.failed("a")
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert queue.idle
