"""When resctrl is looked at, and what is reported of that."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.saved import FILE_NAME
from numapin_enforcer.resctrl.updater import LOOK_SECONDS, RETRY_SECONDS, CacheUpdater, Host
from numapin_enforcer.resctrl.values import GROUP, NOTHING, Wanted
from support.fakes.kernels.resctrl import FakeResctrl
from support.fakes.manual_clock import ManualClock

WANTED = Wanted(CpuSet.parse("2-3"), frozenset({0}), l3_percent=40)


@pytest.fixture
def updater(
    host: Host,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> CacheUpdater:
    made = CacheUpdater(host, wake, clock)
    start(made.run())
    return made


async def test_a_restart_restores_what_an_earlier_process_has_divided(
    updater: CacheUpdater, host: Host, kernel: FakeResctrl, clock: ManualClock, tmp_path: Path
) -> None:
    found = kernel.everything()
    host.keeper().look(WANTED)
    updater.want(NOTHING)
    await clock.until(lambda: not (tmp_path / FILE_NAME).exists())
    assert kernel.everything() == found
    reads = kernel.reads
    await clock.advance(10 * LOOK_SECONDS)
    assert kernel.reads == reads


async def test_what_is_refused_is_tried_again_later(
    updater: CacheUpdater, kernel: FakeResctrl, clock: ManualClock, wake: asyncio.Event
) -> None:
    kernel.closids = 1
    updater.want(WANTED)
    await clock.until(lambda: "Out of CLOSIDs" in updater.message)
    assert wake.is_set()
    kernel.closids = 2
    await clock.until(lambda: clock.pending_seconds() == (RETRY_SECONDS,))
    await clock.advance(RETRY_SECONDS)
    await clock.until(lambda: not updater.message)
    assert updater.outcome.cpus == WANTED.cpus


async def test_what_cannot_be_restored_is_an_obstacle_and_is_tried_again(
    updater: CacheUpdater, kernel: FakeResctrl, clock: ManualClock, tmp_path: Path
) -> None:
    updater.want(WANTED)
    await clock.until(lambda: updater.outcome.cpus)
    kernel.read_only = True
    updater.want(NOTHING)
    await clock.until(updater.obstacles)
    [obstacle] = updater.obstacles()
    assert obstacle.reason == Reason.CACHE_NOT_SHARED_OUT
    assert "EROFS" in obstacle.message
    assert (tmp_path / FILE_NAME).exists()
    kernel.read_only = False
    await clock.advance(60)
    await clock.until(lambda: not updater.obstacles())
    assert GROUP not in kernel.all_groups


async def test_where_nothing_was_written_nothing_is_to_be_restored(
    updater: CacheUpdater, kernel: FakeResctrl, clock: ManualClock
) -> None:
    kernel.mounted = False
    updater.want(WANTED)
    await clock.until(updater.obstacles)
    updater.want(NOTHING)
    await clock.until(lambda: not updater.obstacles())
    assert updater.outcome.problems == ()


async def test_a_lying_kernel_is_an_answer_and_no_defect(
    updater: CacheUpdater, kernel: FakeResctrl, clock: ManualClock
) -> None:
    kernel.default.values["L3", 0] = -5
    updater.want(WANTED)
    await clock.until(lambda: updater.message)
    assert "numapin cannot read" in updater.message
    assert kernel.writes == []


async def test_a_pause_leaves_everything_as_it_is(
    updater: CacheUpdater, kernel: FakeResctrl, clock: ManualClock
) -> None:
    updater.want(WANTED)
    await clock.until(lambda: updater.outcome.cpus)
    updater.pause()
    kernel.remove(GROUP)
    await clock.advance(10 * LOOK_SECONDS)
    assert GROUP not in kernel.all_groups
    updater.want(WANTED)
    await clock.until(lambda: GROUP in kernel.all_groups)
