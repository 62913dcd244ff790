"""What loops may rely on of a clock; the machine's and the tests' are held to the same."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from numapin_daemon.clock import Clock, SystemClock
from support.fakes.manual_clock import ManualClock

SHORT = 0.002
LONG = 3600.0

Answer = TypeVar("Answer")


@pytest.fixture(params=[SystemClock, ManualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


async def finish(clock: Clock, waiting: Coroutine[None, None, Answer]) -> Answer:
    """Let time pass until `waiting` has ended."""
    async with asyncio.timeout(60):
        task = asyncio.create_task(waiting)
        while isinstance(clock, ManualClock) and not task.done():
            await clock.advance(SHORT / 2)
        return await task


async def test_a_sleep_lasts_as_long_as_it_was_asked_to(clock: Clock) -> None:
    before = clock.monotonic()
    await finish(clock, clock.sleep(SHORT))
    assert clock.monotonic() >= before + SHORT


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_sleep_of_no_time_lets_others_run(clock: Clock, seconds: float) -> None:
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    await clock.sleep(seconds)
    assert ran


@pytest.mark.parametrize("timeout_seconds", [None, LONG, 0, -1])
async def test_an_event_that_is_set_is_not_waited_for(
    clock: Clock, timeout_seconds: float | None
) -> None:
    event = asyncio.Event()
    event.set()
    assert await clock.wait(event, timeout_seconds)
    assert event.is_set()


@pytest.mark.parametrize("timeout_seconds", [None, LONG])
async def test_an_event_that_is_set_ends_the_wait(
    clock: Clock, timeout_seconds: float | None
) -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await clock.wait(event, timeout_seconds)


async def test_an_event_that_is_set_as_the_time_ends_is_seen(clock: Clock) -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await clock.wait(event, 0)


@pytest.mark.parametrize("timeout_seconds", [SHORT, 0, -1])
async def test_a_wait_ends_in_time(clock: Clock, timeout_seconds: float) -> None:
    before = clock.monotonic()
    assert not await finish(clock, clock.wait(asyncio.Event(), timeout_seconds))
    assert clock.monotonic() >= before + timeout_seconds


@pytest.mark.parametrize("timeout_seconds", [None, LONG])
async def test_a_wait_can_be_cancelled(clock: Clock, timeout_seconds: float | None) -> None:
    task = asyncio.create_task(clock.wait(asyncio.Event(), timeout_seconds))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_time_is_in_utc_and_written_as_kubernetes_does(clock: Clock) -> None:
    before = clock.now()
    assert before.tzinfo is UTC
    whole = datetime.strptime(clock.now_text(), "%Y-%m-%dT%H:%M:%S%z")
    exact = datetime.strptime(clock.now_text(microseconds=True), "%Y-%m-%dT%H:%M:%S.%f%z")
    assert before.replace(microsecond=0) <= whole <= clock.now()
    assert before <= exact <= clock.now()


async def test_a_manual_clock_ends_sleeps_one_after_the_other() -> None:
    clock, ended = ManualClock(), list[tuple[str, float]]()

    async def sleep_twice(name: str, seconds: float) -> None:
        for _ in range(2):
            await clock.sleep(seconds)
            ended.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleep_twice("slow", 5), name="slow")
        tasks.create_task(sleep_twice("quick", 2), name="quick")
        await clock.run_tasks()
        assert clock.pending_seconds() == (2, 5)
        await clock.advance(4.5)
        assert ended == [("quick", 1002), ("quick", 1004)]
        assert clock.pending_seconds() == (0.5,)
        await clock.advance(5.5)
    assert ended[2:] == [("slow", 1005), ("slow", 1010)]
    assert clock.now_text() == "2030-01-01T00:00:10Z"
