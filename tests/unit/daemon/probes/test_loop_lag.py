import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from numapin_daemon.probes.loop_lag import LoopLag
from support.fakes.manual_clock import ManualClock


class BlockedClock(ManualClock):
    """Time also passes while the loop is blocked, so that sleeps end late."""

    def block(self, seconds: float) -> None:
        self._now_seconds += seconds


@asynccontextmanager
async def measuring(lag: LoopLag) -> AsyncIterator[None]:
    task = asyncio.create_task(lag.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_loop_in_time_has_no_lag() -> None:
    clock = BlockedClock(start_seconds=0.0)
    lag = LoopLag(0.5, clock=clock)
    async with measuring(lag):
        await clock.advance(10.0)
        assert (lag.current_seconds(), lag.longest_seconds) == (0.0, 0.0)


async def test_the_longest_delay_is_kept() -> None:
    clock = BlockedClock(start_seconds=0.0)
    lag = LoopLag(0.5, clock=clock)
    async with measuring(lag):
        await clock.run_tasks()
        clock.block(3.5)
        assert lag.current_seconds() == 3.0
        await clock.advance(0.0)
        assert (lag.current_seconds(), lag.longest_seconds) == (0.0, 3.0)
        clock.block(1.5)
        await clock.advance(0.0)
        assert lag.longest_seconds == 3.0


async def test_taking_the_longest_delay_starts_again_and_includes_the_present_one() -> None:
    clock = BlockedClock(start_seconds=0.0)
    lag = LoopLag(0.5, clock=clock)
    async with measuring(lag):
        await clock.run_tasks()
        clock.block(2.5)
        assert lag.take_longest_seconds() == 2.0
        await clock.advance(0.0)
        assert lag.take_longest_seconds() == 2.0
        assert lag.take_longest_seconds() == 0.0


async def test_nothing_is_late_before_and_after_the_measurement() -> None:
    clock = BlockedClock(start_seconds=0.0)
    lag = LoopLag(0.5, clock=clock)
    assert lag.current_seconds() == 0.0
    async with measuring(lag):
        await clock.run_tasks()
    clock.block(60.0)
    assert lag.current_seconds() == 0.0
