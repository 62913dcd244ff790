"""When masks are looked at, and what is reported of that."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.keeper import RETRY_SECONDS, Keeper
from numapin_enforcer.interrupts.plan import Limits
from numapin_enforcer.interrupts.saved_masks import FILE_NAME, SavedMasks
from numapin_enforcer.interrupts.updater import LOOK_SECONDS, OFTEN, Host, InterruptUpdater
from support.fakes.kernels.masks import FakeMasks
from support.fakes.manual_clock import ManualClock

ALL, EXCLUSIVE = CpuSet.parse("0-3"), CpuSet.parse("2")
KEEP_OFF = Limits(EXCLUSIVE, ALL - EXCLUSIVE, ALL)
RESTORE = Limits(CpuSet(), ALL, ALL)


@pytest.fixture
def kernel() -> FakeMasks:
    made = FakeMasks(ALL)
    made.plug("24", "eth0-rx")
    return made


@pytest.fixture
def updater(
    kernel: FakeMasks,
    tmp_path: Path,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> InterruptUpdater:
    made = InterruptUpdater(Host(kernel, tmp_path, "boot"), wake, clock)
    start(made.run())
    return made


def waits(clock: ManualClock) -> bool:
    """Whether the next look is due in `LOOK_SECONDS`, and none runs."""
    return clock.pending_seconds() == (LOOK_SECONDS,)


async def look_again(clock: ManualClock) -> None:
    await clock.until(lambda: waits(clock))
    await clock.advance(LOOK_SECONDS)
    await clock.until(lambda: waits(clock))


async def test_nothing_is_read_while_nothing_is_wanted(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock
) -> None:
    updater.want(RESTORE)
    await clock.advance(10 * LOOK_SECONDS)
    assert kernel.reads == 0
    updater.pause()
    await clock.advance(10 * LOOK_SECONDS)
    assert kernel.reads == 0


async def test_new_interrupts_and_those_set_by_others_are_seen_at_the_next_look(
    updater: InterruptUpdater, kernel: FakeMasks, wake: asyncio.Event, clock: ManualClock
) -> None:
    updater.want(KEEP_OFF)
    await clock.until(wake.is_set)
    assert updater.outcome.kept_off == EXCLUSIVE
    kernel.plug("25", "nvme0q1")
    kernel.set("25", EXCLUSIVE)
    kernel.set("24", EXCLUSIVE)
    counted: list[int] = []
    updater.on_foreign = counted.append
    await look_again(clock)
    await clock.until(lambda: counted)
    assert not (kernel.interrupts["24"].cpus | kernel.interrupts["25"].cpus) & EXCLUSIVE
    assert counted == [1]
    assert updater.note == ""


async def test_a_program_that_goes_on_is_reported_until_it_ends(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock
) -> None:
    updater.want(KEEP_OFF)
    await clock.until(lambda: waits(clock))
    for _ in range(OFTEN):
        kernel.set("24", EXCLUSIVE)
        await look_again(clock)
    assert "irqbalance" in updater.note
    clock.stand_still(3600)
    assert updater.note == ""


async def test_a_restart_restores_what_an_earlier_process_has_narrowed(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock, tmp_path: Path
) -> None:
    Keeper(kernel, SavedMasks(tmp_path, "boot")).look(KEEP_OFF, 0.0)
    updater.want(RESTORE)
    await clock.until(lambda: not (tmp_path / FILE_NAME).exists())
    assert set(kernel.everything().values()) == {ALL}
    reads = kernel.reads
    await clock.advance(10 * LOOK_SECONDS)
    assert kernel.reads == reads


async def test_a_pause_leaves_everything_as_it_is(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock
) -> None:
    updater.want(KEEP_OFF)
    await clock.until(lambda: waits(clock))
    updater.pause()
    kernel.set("24", ALL)
    await clock.advance(10 * LOOK_SECONDS)
    assert kernel.interrupts["24"].cpus == ALL
    updater.want(KEEP_OFF)
    await clock.until(lambda: kernel.interrupts["24"].cpus == ALL - EXCLUSIVE)


async def test_files_that_cannot_be_written_are_named_and_tried_again(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock
) -> None:
    kernel.read_only = True
    updater.want(KEEP_OFF)
    await clock.until(lambda: updater.lacking)
    assert "EROFS" in updater.lacking
    assert updater.message == updater.lacking
    kernel.read_only = False
    await clock.advance(60)
    await clock.until(lambda: not updater.lacking)
    assert updater.outcome.kept_off == EXCLUSIVE


async def test_where_nothing_was_written_nothing_is_to_be_restored(
    updater: InterruptUpdater, clock: ManualClock, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).with_suffix(".new").mkdir()
    updater.want(KEEP_OFF)
    await clock.until(updater.obstacles)
    updater.want(RESTORE)
    await clock.until(lambda: not updater.obstacles())


async def test_a_full_disk_is_named(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).with_suffix(".new").mkdir()
    updater.want(KEEP_OFF)
    await clock.until(lambda: updater.lacking)
    assert kernel.writes == []


async def test_what_cannot_be_restored_is_an_obstacle_and_is_tried_again(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock, tmp_path: Path
) -> None:
    updater.want(KEEP_OFF)
    await clock.until(lambda: waits(clock))
    kernel.interrupts["24"].managed = True
    updater.want(RESTORE)
    await clock.until(updater.obstacles)
    (obstacle,) = updater.obstacles()
    assert obstacle.reason == Reason.INTERRUPTS_NOT_MOVED
    assert "EIO" in obstacle.message
    assert (tmp_path / FILE_NAME).exists()
    kernel.interrupts["24"].managed = False
    await clock.until(lambda: waits(clock))
    clock.stand_still(RETRY_SECONDS)
    await clock.advance(LOOK_SECONDS)
    await clock.until(lambda: not updater.obstacles())
    assert kernel.interrupts["24"].cpus == ALL


async def test_only_what_the_kernel_refuses_and_others_raise_is_lacking(
    updater: InterruptUpdater, kernel: FakeMasks, clock: ManualClock
) -> None:
    kernel.plug("25", "nvme0q1", managed=True)
    kernel.interrupts["25"].effective = EXCLUSIVE
    kernel.plug("26", "nvme0q2", managed=True)
    kernel.interrupts["26"].cpus = kernel.interrupts["26"].effective = EXCLUSIVE
    updater.want(KEEP_OFF)
    await clock.until(lambda: waits(clock))
    assert "nvme0q1" in updater.lacking
    assert "nvme0q2" not in updater.lacking
    assert "nvme0q2" in updater.message
