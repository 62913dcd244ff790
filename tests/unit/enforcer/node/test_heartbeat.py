"""The standby learns from the stamp whether the enforcer makes progress."""

import asyncio
import os
from pathlib import Path

import pytest

from numapin_enforcer.node.heartbeat import (
    HUNG_SECONDS,
    MOST_VAIN_PASSES,
    Heartbeat,
    Progress,
)
from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.node.lock_keeper import BEAT_SECONDS, IDLE, WORKS_AGAIN, keep_alive
from support.fakes.manual_clock import ManualClock


async def test_a_loop_that_runs_is_not_stale_and_one_that_stops_is(
    tmp_path: Path, clock: ManualClock
) -> None:
    seen = Heartbeat(tmp_path / "run", clock.monotonic)
    assert seen.age_seconds() is None
    assert not seen.is_stale()
    progress = Progress(clock.monotonic)
    progress.expect(60)
    heart, lock = Heartbeat(tmp_path / "run", clock.monotonic), NodeLock(tmp_path)
    beating = asyncio.create_task(keep_alive(heart, lock, progress, clock))
    for _ in range(10):
        await clock.advance(BEAT_SECONDS)
        assert not seen.is_stale()
    beating.cancel()
    await clock.advance(HUNG_SECONDS + BEAT_SECONDS)
    assert seen.is_stale()


async def test_a_loop_that_runs_and_does_nothing_is_stale_until_a_pass_works(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    seen, progress = Heartbeat(tmp_path, clock.monotonic), Progress(clock.monotonic)
    progress.expect(600)
    lock = NodeLock(tmp_path)
    beating = asyncio.create_task(
        keep_alive(Heartbeat(tmp_path, clock.monotonic), lock, progress, clock)
    )
    for _ in range(MOST_VAIN_PASSES):
        await clock.advance(BEAT_SECONDS)
        assert not seen.is_stale()
        progress.passed(in_vain=True)
    await clock.advance(HUNG_SECONDS + BEAT_SECONDS)
    assert seen.is_stale()
    progress.passed(in_vain=False)
    await clock.advance(BEAT_SECONDS)
    assert not seen.is_stale()
    beating.cancel()
    assert caplog.messages == [IDLE, WORKS_AGAIN]


async def test_a_process_that_goes_on_after_a_stop_beats_before_its_next_pass(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Else the standby would fence beside it, and each would revert what the other writes."""
    lock, progress = NodeLock(tmp_path), Progress(clock.monotonic)
    heart = Heartbeat(tmp_path, clock.monotonic)
    beating = asyncio.create_task(keep_alive(heart, lock, progress, clock))
    await clock.advance(BEAT_SECONDS)
    progress.expect(10.0)
    clock.stand_still(60.0)
    assert heart.is_stale()
    await clock.advance(BEAT_SECONDS)
    assert (heart.is_stale(), progress.problem) == (False, "")
    await clock.advance(10.0 + HUNG_SECONDS + BEAT_SECONDS)
    assert progress.problem
    beating.cancel()


def test_single_passes_that_fail_are_no_reason(clock: ManualClock) -> None:
    progress = Progress(clock.monotonic)
    for in_vain in (True, True, False, True, True):
        progress.passed(in_vain=in_vain)
        assert progress.problem == ""
    progress.passed(in_vain=True)
    assert progress.problem == "the last 3 passes over the cgroups could do nothing"


async def test_a_pass_that_does_not_come_is_a_reason(clock: ManualClock) -> None:
    """The loop goes on, and what makes the passes waits for something that never comes."""
    progress = Progress(clock.monotonic)
    progress.passed(in_vain=False)
    progress.expect(10)
    await clock.advance(10 + HUNG_SECONDS)
    assert progress.problem == ""
    await clock.advance(1)
    assert progress.problem == "the next pass over the cgroups is 5 s late"
    assert progress.age_seconds() == 15
    progress.passed(in_vain=False)
    progress.expect(10)
    assert (progress.problem, progress.age_seconds()) == ("", 0)


@pytest.mark.parametrize("content", [b"", b"1234567", b"\0" * 7])
def test_a_damaged_stamp_says_nothing(tmp_path: Path, clock: ManualClock, content: bytes) -> None:
    (tmp_path / "heartbeat").write_bytes(content)
    assert Heartbeat(tmp_path, clock.monotonic).age_seconds() is None


def test_a_stamp_of_an_earlier_boot_says_nothing(tmp_path: Path) -> None:
    Heartbeat(tmp_path, ManualClock(start_seconds=5000.0).monotonic).beat()
    assert not Heartbeat(tmp_path, ManualClock().monotonic).is_stale()


def test_a_fifo_in_place_of_the_stamp_is_not_waited_for(tmp_path: Path, clock: ManualClock) -> None:
    os.mkfifo(tmp_path / "heartbeat")
    assert Heartbeat(tmp_path, clock.monotonic).age_seconds() is None


async def test_a_stamp_that_cannot_be_written_is_logged_once(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    heart, lock = Heartbeat(tmp_path / "file", clock.monotonic), NodeLock(tmp_path)
    progress = Progress(clock.monotonic)
    beating = asyncio.create_task(keep_alive(heart, lock, progress, clock))
    for _ in range(3):
        await clock.advance(BEAT_SECONDS)
    beating.cancel()
    assert caplog.messages == ["a standby cannot see whether this process hangs"]


def test_without_a_folder_nothing_is_written_or_known(clock: ManualClock) -> None:
    heartbeat = Heartbeat(None, clock.monotonic)
    heartbeat.beat()
    assert not heartbeat.is_stale()
