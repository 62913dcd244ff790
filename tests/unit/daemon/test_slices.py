"""Long work gives other tasks a turn whenever a slice of time is used up."""

import asyncio

from numapin_daemon.slices import Slices
from support.fakes.manual_clock import ManualClock


class WorkingClock(ManualClock):
    """A second passes with each look at the clock."""

    def monotonic(self) -> float:
        self._now_seconds += 1.0
        return super().monotonic()


async def turns_of_others(clock: ManualClock, pieces: int) -> int:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(count())
    slices = Slices(clock, slice_seconds=5.0)
    for _ in range(pieces):
        await slices.rest()
    task.cancel()
    return turns


async def test_other_tasks_get_a_turn_after_each_slice() -> None:
    assert await turns_of_others(WorkingClock(), 30) == 5


async def test_short_work_is_not_divided() -> None:
    assert await turns_of_others(ManualClock(), 30) == 0
