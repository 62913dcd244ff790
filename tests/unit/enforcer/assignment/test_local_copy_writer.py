"""The newest assignment is saved in the background, and a failure is retried."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec, Pools
from numapin_enforcer.assignment.local_copy import (
    PATIENCE_SECONDS,
    Assignment,
    LocalCopy,
    LocalCopyWriter,
)
from support.fakes.manual_clock import ManualClock

SPEC = NodeAssignmentSpec(pools=Pools(reserved=CpuSet((0,)), shared=CpuSet((0, 1))))
FIRST, SECOND = (Assignment("n", "u", generation, SPEC) for generation in (1, 2))


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    return LocalCopy(tmp_path / "state", "n")


@pytest.fixture
def make_writable(copy: LocalCopy) -> Callable[[], None]:
    """Until it is called there is a file in the folder's place."""
    copy.path.parent.write_text("")
    return copy.path.parent.unlink


@pytest.fixture
def writer(
    copy: LocalCopy,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> LocalCopyWriter:
    made = LocalCopyWriter(copy, None, wake, clock)
    start(made.run())
    return made


def would_load(writer: LocalCopyWriter) -> NodeAssignmentSpec | None:
    return writer.restart_spec


async def test_a_restart_loads_the_older_spec_until_the_newest_is_on_disk(
    writer: LocalCopyWriter, copy: LocalCopy, wake: asyncio.Event, clock: ManualClock
) -> None:
    assert would_load(writer) is None
    writer.want(FIRST)
    assert would_load(writer) == NodeAssignmentSpec()
    await clock.until(wake.is_set)
    assert would_load(writer) is None
    writer.want(SECOND)
    assert would_load(writer) == FIRST.spec
    await clock.until(lambda: writer.restart_spec is None)
    assert copy.read() == SECOND


async def test_a_status_waits_until_the_newest_assignment_is_on_disk(
    writer: LocalCopyWriter, wake: asyncio.Event, clock: ManualClock
) -> None:
    found = [writer.patience_seconds]
    writer.want(FIRST)
    found.append(writer.patience_seconds)
    await clock.until(wake.is_set)
    assert [*found, writer.patience_seconds] == [None, PATIENCE_SECONDS, None]


def test_a_status_does_not_wait_for_a_slow_disk_however_often_the_assignment_changes(
    copy: LocalCopy, wake: asyncio.Event, clock: ManualClock
) -> None:
    slow = LocalCopyWriter(copy, None, wake, clock)
    slow.want(FIRST)
    clock.stand_still(0.4)
    slow.want(SECOND)
    assert slow.patience_seconds == pytest.approx(0.1)
    clock.stand_still(0.1)
    assert slow.patience_seconds is None
    assert slow.restart_spec == NodeAssignmentSpec()


def test_a_status_does_not_wait_for_what_is_on_disk(
    copy: LocalCopy, wake: asyncio.Event, clock: ManualClock
) -> None:
    writer = LocalCopyWriter(copy, FIRST, wake, clock)
    writer.want(SECOND)
    writer.want(FIRST)
    assert writer.patience_seconds is None


async def test_an_equal_assignment_is_not_saved_again(
    writer: LocalCopyWriter, copy: LocalCopy, wake: asyncio.Event, clock: ManualClock
) -> None:
    writer.want(FIRST)
    await clock.until(wake.is_set)
    copy.path.unlink()
    writer.want(Assignment("n", "u", 1, replace(SPEC)))
    await clock.advance(60)
    assert copy.read() is None


async def test_the_newest_assignment_is_saved_once_the_disk_allows_it(
    writer: LocalCopyWriter,
    copy: LocalCopy,
    make_writable: Callable[[], None],
    wake: asyncio.Event,
    clock: ManualClock,
) -> None:
    writer.want(FIRST)
    await clock.until(wake.is_set)
    assert "the assignment could not be saved in" in writer.problem
    assert writer.patience_seconds is None
    assert would_load(writer) == NodeAssignmentSpec()
    assert [one.reason for one in writer.obstacles()] == ["AssignmentNotSaved"]
    writer.want(SECOND)
    make_writable()
    await clock.advance(1.0)
    await clock.until(lambda: not writer.problem)
    assert copy.read() == SECOND
    assert would_load(writer) is None
    assert writer.obstacles() == ()


async def test_an_unexpected_exception_is_reported_and_retried(
    writer: LocalCopyWriter,
    copy: LocalCopy,
    monkeypatch: pytest.MonkeyPatch,
    wake: asyncio.Event,
    clock: ManualClock,
) -> None:
    def fail(assignment: Assignment) -> None:
        raise ZeroDivisionError("injected")

    with monkeypatch.context() as patched:
        patched.setattr(copy, "write", fail)
        writer.want(FIRST)
        await clock.until(wake.is_set)
    assert writer.problem.endswith("ZeroDivisionError: injected")
    (obstacle,) = writer.obstacles()
    assert obstacle.reason == "InternalError"
    await clock.advance(1.0)
    await clock.until(lambda: not writer.problem)
    assert copy.read() == FIRST
