"""Containers' names, learned from the runtime in the background."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from numapin_enforcer.runtime.container_names import (
    LISTED_WITHIN_SECONDS,
    MAX_SINGLE_QUERIES,
    ContainerNames,
)
from numapin_enforcer.runtime.interface import (
    ContainerState,
    RuntimeContainer,
)
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.values.runtime import AWAY

MAIN = RuntimeContainer("c1", "main", ContainerState.CREATED)


async def test_a_name_is_asked_for_once_and_wakes_the_loop(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    runtime.has("c1", "main")
    assert names.need(["c1"]) == {"c1"}
    await clock.run_tasks()
    assert wake.is_set()
    assert names.known == {"c1": "main"}
    assert names.need(["c1"]) == frozenset()
    await clock.run_tasks()
    assert runtime.asked == ["c1"]


async def test_a_sandbox_has_no_name(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    runtime.sandbox_ids.add("s1")
    names.need(["s1"])
    await clock.run_tasks()
    assert wake.is_set()
    assert names.known == {"s1": ""}


@pytest.mark.parametrize("count", [1, MAX_SINGLE_QUERIES + 1])
async def test_a_container_that_is_listed_after_its_cgroup_appeared_gets_its_name(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    count: int,
) -> None:
    """CRI-O lists a container only after runc has created it."""
    ids = [f"c{number}" for number in range(count)]
    assert names.need(ids) == set(ids)
    await clock.advance(0.02)
    assert len(runtime.asked) > 2
    assert names.unlisted == set(ids)
    assert not wake.is_set()
    assert names.need(ids) == set(ids)
    for id_ in ids:
        runtime.has(id_, "main", ContainerState.CREATED)
    await clock.advance(0.01)
    assert wake.is_set()
    assert names.known == dict.fromkeys(ids, "main")


async def test_an_id_that_is_never_listed_is_asked_for_until_it_is_not_needed(
    names: ContainerNames, runtime: FakeRuntime, clock: ManualClock
) -> None:
    runtime.has("c1", "main")
    names.need(["gone"])
    await clock.advance(0.02)
    assert len(runtime.asked) > 2
    names.need(["c1"])
    await clock.run_tasks()
    asked = len(runtime.asked)
    await clock.advance(60)
    assert len(runtime.asked) == asked
    assert names.known == {"c1": "main"}


async def test_a_container_that_is_never_listed_costs_few_questions(
    names: ContainerNames, runtime: FakeRuntime, clock: ManualClock
) -> None:
    """Each costs an idle enforcer about a millisecond of CPU time."""
    names.need(["gone"])
    await clock.advance(60)
    assert len(runtime.asked) < 80
    asked = len(runtime.asked)
    await clock.advance(60)
    assert len(runtime.asked) <= asked + 14


async def test_many_are_asked_for_with_one_list(
    names: ContainerNames, runtime: FakeRuntime, clock: ManualClock
) -> None:
    ids = [f"c{number}" for number in range(MAX_SINGLE_QUERIES + 1)]
    for id_ in ids:
        runtime.has(id_, f"name-{id_}")
    names.need(ids)
    await clock.run_tasks()
    assert names.known == {id_: f"name-{id_}" for id_ in ids}
    assert runtime.asked == [""]


async def test_a_runtime_that_does_not_answer_is_reported_and_asked_again(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    runtime.has("c1", "main")
    runtime.failure = AWAY
    names.need(["c1"])
    await clock.run_tasks()
    assert wake.is_set()
    assert names.problem is AWAY
    (obstacle,) = names.obstacles()
    assert (obstacle.reason, obstacle.message) == ("RuntimeUnavailable", str(AWAY))
    runtime.failure = None
    await clock.advance(0.1)
    assert names.known
    assert not names.obstacles()


async def test_an_unexpected_exception_is_reported_and_retried(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    runtime.has("c1", "main")
    runtime.failure = ZeroDivisionError("injected")
    names.need(["c1"])
    await clock.run_tasks()
    assert wake.is_set()
    (obstacle,) = names.obstacles()
    assert obstacle.reason == "InternalError"
    assert obstacle.message.startswith("asking the container runtime failed unexpectedly")
    runtime.failure = None
    await clock.advance(0.1)
    assert names.known
    assert not names.obstacles()


async def test_an_event_saves_the_question(
    names: ContainerNames,
    runtime: FakeRuntime,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    runtime.queue.put_nowait((MAIN,))
    await clock.run_tasks()
    assert names.known == {"c1": "main"}
    assert names.need(["c1"]) == frozenset()
    await clock.run_tasks()
    assert runtime.asked == []


async def test_an_event_answers_a_pending_question(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    runtime.failure = AWAY
    names.need(["c1"])
    await clock.run_tasks()
    wake.clear()
    names.learn([RuntimeContainer("c2", "other", ContainerState.CREATED)])
    assert not wake.is_set()
    names.learn([MAIN])
    assert wake.is_set()
    assert names.known["c1"] == "main"


async def test_an_event_about_a_container_that_was_not_listed_answers_the_question(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, clock: ManualClock
) -> None:
    names.need(["c1", "c2"])
    await clock.advance(LISTED_WITHIN_SECONDS)
    assert names.unlisted == names.long_unlisted == {"c1", "c2"}
    names.learn([MAIN])
    assert wake.is_set()
    assert names.unlisted == names.long_unlisted == {"c2"}
    assert names.need(["c1"]) == frozenset()
    assert names.unlisted == frozenset()


async def test_only_what_is_needed_is_remembered_of_ids_that_come_and_go(
    names: ContainerNames, runtime: FakeRuntime, clock: ManualClock
) -> None:
    """A runtime that lists none of them, or others, makes no difference."""
    runtime.has("other", "main")
    for begin in range(0, 10_000, 1_000):
        ids = {f"c{number}" for number in range(begin, begin + 1_000)}
        assert names.need(ids) == ids
        await clock.run_tasks()
        assert names.unlisted == ids
    assert (names.need([]), names.unlisted, names.slow) == (frozenset(), frozenset(), frozenset())
    assert names.known == {}


async def test_a_broken_stream_of_events_is_opened_again(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    runtime.queue.put_nowait(AWAY)
    await clock.run_tasks()
    assert wake.is_set()
    assert names.problem is AWAY
    wake.clear()
    runtime.queue.put_nowait(AWAY)
    await clock.advance(0.5)
    assert not wake.is_set()  # nothing has changed
    runtime.queue.put_nowait((MAIN,))
    await clock.advance(1)
    assert names.known == {"c1": "main"}


async def test_an_unexpected_exception_of_the_stream_is_reported_and_the_stream_opened_again(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    runtime.queue.put_nowait(ZeroDivisionError("injected"))
    await clock.run_tasks()
    assert wake.is_set()
    (obstacle,) = names.obstacles()
    assert obstacle.reason == "InternalError"
    wake.clear()
    runtime.queue.put_nowait((MAIN,))
    await clock.advance(0.5)
    assert names.known == {"c1": "main"}
    assert not names.obstacles()
    assert wake.is_set()


async def test_a_stream_that_ends_is_opened_again_after_ever_longer_pauses(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    """Each end wakes the loop, since containers may have been missed."""
    runtime.queue = asyncio.Queue()
    start(names.listen())
    for opened in range(1, 12):
        wake.clear()
        runtime.queue.put_nowait(None)
        await clock.advance(10)
        assert wake.is_set()
        assert runtime.streams_opened == opened + 1
    assert not names.obstacles()
    for _ in range(20):
        runtime.queue.put_nowait(None)
    await clock.advance(10)
    assert runtime.streams_opened < 25


async def test_a_runtime_without_events_is_not_asked_for_them_again(
    names: ContainerNames,
    runtime: FakeRuntime,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    start(names.listen())
    await clock.advance(600)
    assert runtime.streams_opened == 1
    assert names.problem is None
    assert not names.obstacles()


async def test_the_names_of_containers_without_a_cgroup_are_dropped(
    names: ContainerNames, runtime: FakeRuntime, clock: ManualClock
) -> None:
    runtime.has("c1", "main")
    runtime.sandbox_ids.add("s1")
    names.need(["c1", "s1"])
    await clock.run_tasks()
    assert len(names.known) == 2
    names.forget_except(["c1"])
    assert names.known == {"c1": "main"}
