"""Which sets systemd is sent, and which CPUs it may still write."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.systemd.interface import (
    SliceSets,
    SystemdAbsentError,
    SystemdDeniedError,
    SystemdRefusedError,
    SystemdUnavailableError,
)
from numapin_enforcer.systemd.updater import SliceUpdater
from support.fakes.manual_clock import ManualClock
from support.fakes.systemd import FakeSystemd

ROOT = "kubepods.slice"
BURSTABLE = f"{ROOT}/kubepods-burstable.slice"
BEST_EFFORT = f"{ROOT}/kubepods-besteffort.slice"
ALL, SHARED = CpuSet.parse("0-3"), CpuSet.parse("0-1")
MEMS = MemSet((0,))
NARROW, WIDE = SliceSets(SHARED, MEMS), SliceSets(ALL, MEMS)
BACKOFF_SECONDS = 0.5


@pytest.fixture
def systemd() -> FakeSystemd:
    return FakeSystemd(BURSTABLE, BEST_EFFORT)


@pytest.fixture
def updater(
    systemd: FakeSystemd,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> SliceUpdater:
    made = SliceUpdater(lambda: systemd, wake, clock)
    start(made.run())
    return made


def finishes_soon(updater: SliceUpdater) -> bool:
    return updater.finishes_soon


async def test_systemd_is_sent_a_set_once(
    updater: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event, clock: ManualClock
) -> None:
    updater.want({BEST_EFFORT: NARROW, BURSTABLE: WIDE})
    assert finishes_soon(updater)
    await clock.run_tasks()
    assert not finishes_soon(updater)
    assert systemd.known == {BEST_EFFORT: NARROW, BURSTABLE: WIDE}
    assert wake.is_set()
    assert updater.stale_cpus == {BEST_EFFORT: SHARED, BURSTABLE: ALL}
    reads = systemd.reads
    updater.want({BEST_EFFORT: NARROW, BURSTABLE: WIDE})
    assert not finishes_soon(updater)
    await clock.run_tasks()
    assert (systemd.reads, len(systemd.writes)) == (reads, 2)


async def test_a_set_that_systemd_has_from_before_is_not_sent(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    systemd.known[BEST_EFFORT] = NARROW
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert systemd.reads == 1
    assert not systemd.writes


async def test_cpus_are_stale_until_the_newer_set_is_sent(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    updater.want({BEST_EFFORT: WIDE})
    await clock.run_tasks()
    systemd.gate.clear()
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert updater.stale_cpus[BEST_EFFORT] == ALL
    systemd.gate.set()
    await clock.run_tasks()
    assert updater.stale_cpus[BEST_EFFORT] == SHARED


async def test_a_set_that_is_wanted_during_an_update_is_sent_last(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    seen: list[CpuSet] = []

    def narrow() -> None:
        updater.want({BEST_EFFORT: NARROW})
        seen.append(updater.stale_cpus[BEST_EFFORT])

    systemd.before_write = narrow
    updater.want({BEST_EFFORT: WIDE})
    await clock.run_tasks()
    assert seen[0] == ALL
    assert systemd.known[BEST_EFFORT] == NARROW
    assert updater.stale_cpus[BEST_EFFORT] == SHARED
    assert [sets for _, sets in systemd.writes] == [WIDE, NARROW]


async def test_none_leaves_the_wanted_set(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    updater.want({BEST_EFFORT: NARROW, BURSTABLE: None})
    await clock.run_tasks()
    updater.want({BEST_EFFORT: None, BURSTABLE: None})
    await clock.run_tasks()
    assert systemd.known == {BEST_EFFORT: NARROW, BURSTABLE: SliceSets()}


async def test_an_externally_changed_slice_is_read_again(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    systemd.known[BEST_EFFORT] = WIDE
    updater.note_external_change(BEST_EFFORT)
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert systemd.known[BEST_EFFORT] == NARROW


async def test_a_deleted_slice_has_no_stale_cpus(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    updater.want({})
    assert updater.stale_cpus[BEST_EFFORT] == CpuSet()
    del systemd.known[BEST_EFFORT]
    updater.want({BEST_EFFORT: WIDE})
    await clock.run_tasks()
    assert updater.stale_cpus[BEST_EFFORT] == CpuSet()
    assert not updater.obstacles()


async def test_a_failure_is_reported_and_retried(
    updater: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event, clock: ManualClock
) -> None:
    systemd.failure = SystemdUnavailableError("no answer")
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert wake.is_set()
    (obstacle,) = updater.obstacles()
    assert (obstacle.reason, obstacle.message) == (
        "SystemdUnavailable",
        "systemd was not updated: no answer",
    )
    assert not updater.finishes_soon
    systemd.failure = None
    await clock.advance(BACKOFF_SECONDS)
    assert systemd.known[BEST_EFFORT] == NARROW
    assert not updater.obstacles()


async def test_an_unexpected_exception_is_reported_and_retried(
    updater: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event, clock: ManualClock
) -> None:
    systemd.failure = ZeroDivisionError("injected")
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert wake.is_set()
    (obstacle,) = updater.obstacles()
    assert obstacle.reason == "InternalError"
    assert obstacle.message.startswith("updating systemd failed unexpectedly")
    systemd.failure = None
    await clock.advance(BACKOFF_SECONDS)
    assert systemd.known[BEST_EFFORT] == NARROW
    assert not updater.obstacles()


async def test_a_write_without_effect_is_a_refusal(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock
) -> None:
    systemd.deaf = True
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert isinstance(updater.problem, SystemdRefusedError)
    assert updater.stale_cpus[BEST_EFFORT] == SHARED
    systemd.deaf = False
    await clock.advance(BACKOFF_SECONDS)
    assert not updater.obstacles()


@pytest.mark.parametrize("kind", [SystemdAbsentError, SystemdDeniedError])
async def test_a_systemd_out_of_reach_is_mentioned_and_is_no_obstacle(
    updater: SliceUpdater, systemd: FakeSystemd, clock: ManualClock, kind: type[Exception]
) -> None:
    systemd.failure = kind("there is no socket")
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert updater.note == (
        "systemd is not updated: there is no socket; a QoS class without pods may lose its fence "
        "until the next pass"
    )
    assert not updater.obstacles()
    assert not updater.may_write_older
    updater.pause()
    assert not updater.note


async def test_a_failing_systemd_is_not_asked_at_every_pass(
    updater: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event, clock: ManualClock
) -> None:
    """Every failure wakes the loop, which wants the same again. Another set is sent at once."""
    systemd.failure = SystemdAbsentError("there is no socket")
    updater.want({BEST_EFFORT: NARROW})
    for _ in range(100):
        await asyncio.sleep(0)
        if wake.is_set():
            wake.clear()
            updater.want({BEST_EFFORT: NARROW})
    assert 1 <= systemd.reads <= 3
    systemd.failure = None
    updater.want({BEST_EFFORT: WIDE})
    await clock.run_tasks()
    assert systemd.known[BEST_EFFORT] == WIDE


async def test_a_slow_systemd_does_not_delay_the_status(
    systemd: FakeSystemd,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    updater = SliceUpdater(lambda: systemd, wake, clock, patience_seconds=0)
    start(updater.run())
    systemd.gate.clear()
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    assert wake.is_set()
    assert not updater.finishes_soon
    updater.want({BEST_EFFORT: NARROW})
    assert not updater.finishes_soon
    (obstacle,) = updater.obstacles()
    assert (obstacle.reason, obstacle.message) == (
        "Applying",
        "systemd is being sent the CPUs of kubepods-besteffort.slice",
    )
    systemd.gate.set()
    await clock.run_tasks()
    assert systemd.known[BEST_EFFORT] == NARROW


async def test_the_connection_is_closed_at_the_end(
    systemd: FakeSystemd, wake: asyncio.Event, clock: ManualClock
) -> None:
    updater = SliceUpdater(lambda: systemd, wake, clock)
    task = asyncio.create_task(updater.run())
    updater.want({BEST_EFFORT: NARROW})
    await clock.run_tasks()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert systemd.closed
