"""Which updates the runtime is sent, and which CPUs it may still write."""

import asyncio

import pytest

from numapin_enforcer.runtime.interface import (
    ContainerState,
)
from numapin_enforcer.runtime.updates.updater import NOT_STARTED_SECONDS, RuntimeUpdater
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.values.runtime import ONE, REFUSED, TWO

BACKOFF_SECONDS = 0.5


async def test_an_update_is_sent_once(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert runtime.updates == [("c1", ONE)]
    updater.want({"c1": TWO})
    await clock.run_tasks()
    assert runtime.updates == [("c1", ONE), ("c1", TWO)]
    assert updater.sent("c1") == TWO
    assert updater.sent_ids == {"c1"}
    assert updater.sent("c2") is None


async def test_a_container_is_updated_only_after_its_start(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    runtime.has("c1", "main", ContainerState.CREATED)
    for _ in range(3):
        updater.want({"c1": ONE})
        await clock.advance(NOT_STARTED_SECONDS)
    assert len(runtime.asked) == 4
    assert runtime.updates == []
    runtime.has("c1", "main")
    await clock.advance(NOT_STARTED_SECONDS)
    assert runtime.updates == [("c1", ONE)]


@pytest.mark.parametrize("state", [ContainerState.EXITED, None], ids=["exited", "deleted"])
async def test_a_container_that_ended_is_not_updated(
    updater: RuntimeUpdater,
    runtime: FakeRuntime,
    clock: ManualClock,
    state: ContainerState | None,
) -> None:
    runtime.known.clear()
    if state:
        runtime.has("c1", "main", state)
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert (runtime.updates, runtime.asked, updater.problem) == ([], ["c1"], None)


async def test_an_external_change_of_a_container_that_ended_is_over_with_one_question(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    runtime.has("c1", "main", ContainerState.EXITED)
    updater.note_external_change("c1", TWO.cpus)
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert (runtime.asked, runtime.updates) == (["c1", "c1"], [("c1", ONE)])


async def test_a_refusal_is_reported_and_retried(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    runtime.failure = REFUSED
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert (updater.problem, wake.is_set()) == (REFUSED, True)
    (obstacle,) = updater.obstacles()
    assert obstacle.reason == "RuntimeRefused"
    assert obstacle.message == "the container runtime was not updated: UNKNOWN: half done"
    wake.clear()
    runtime.failure = None
    await clock.advance(BACKOFF_SECONDS)
    assert wake.is_set()
    assert (updater.obstacles(), runtime.updates) == ((), [("c1", ONE)])


async def test_a_failed_container_does_not_hold_up_the_others(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    runtime.has("c2", "main")
    runtime.refuse["c1"] = REFUSED
    updater.want({"c1": ONE, "c2": TWO})
    await clock.run_tasks()
    assert (updater.problem, runtime.updates) == (REFUSED, [("c2", TWO)])


async def test_an_unexpected_exception_is_reported_and_retried(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock, wake: asyncio.Event
) -> None:
    runtime.failure = ZeroDivisionError("injected")
    updater.want({"c1": ONE})
    await clock.run_tasks()
    assert wake.is_set()
    (obstacle,) = updater.obstacles()
    assert obstacle.reason == "InternalError"
    assert obstacle.message.startswith("updating the container runtime failed unexpectedly")
    runtime.failure = None
    await clock.advance(BACKOFF_SECONDS)
    assert (updater.obstacles(), runtime.updates) == ((), [("c1", ONE)])


async def test_a_container_that_is_not_wanted_any_more_is_dropped(
    updater: RuntimeUpdater, clock: ManualClock
) -> None:
    updater.want({"c1": ONE})
    await clock.run_tasks()
    updater.want({})
    assert updater.sent_ids == set()


async def test_outdated_resources_are_not_sent(
    updater: RuntimeUpdater, runtime: FakeRuntime, clock: ManualClock
) -> None:
    """A runtime that is sent older CPUs writes them over the newer ones."""
    runtime.has("c2", "main")
    runtime.may_list.clear()
    updater.want({"c1": ONE, "c2": ONE})
    await clock.run_tasks()
    assert runtime.asked
    updater.want({"c1": TWO, "c2": TWO})
    runtime.may_list.set()
    await clock.run_tasks()
    assert runtime.updates == [("c1", TWO), ("c2", TWO)]
