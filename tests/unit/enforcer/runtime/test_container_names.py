"""Containers' names, learned from the runtime beside the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from numapin_enforcer.runtime.container_names import FEW, ContainerNames
from numapin_enforcer.runtime.types import (
    ContainerState,
    CriUnavailableError,
    RuntimeContainer,
    RuntimeVersion,
)
from support.fakes.runtime import FakeRuntime
from support.real.waiting import eventually

AWAY = CriUnavailableError(Path("/run/x.sock"), "no answer in 5 s")


@pytest.fixture
def names(
    runtime: FakeRuntime, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> ContainerNames:
    made = ContainerNames(runtime, wake)
    start(made.run())
    return made


async def test_a_name_is_asked_for_once_and_wakes_the_loop(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    assert names.need(["c1"]) == {"c1"}
    await wake.wait()
    assert names.known == {"c1": "main"}
    assert names.need(["c1"]) == frozenset()
    assert runtime.asked == ["c1"]


async def test_a_sandbox_has_no_name(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.pods.add("s1")
    names.need(["s1"])
    await wake.wait()
    assert names.known == {"s1": ""}


@pytest.mark.parametrize("count", [1, FEW + 1])
async def test_a_container_that_is_listed_after_its_cgroup_appeared_gets_its_name(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event, count: int
) -> None:
    """As CRI-O does: not before runc has created it."""
    ids = [f"c{number}" for number in range(count)]
    assert names.need(ids) == set(ids)
    await eventually(lambda: len(runtime.asked) > 2 * count)
    assert not wake.is_set()
    assert names.need(ids) == set(ids)
    for id_ in ids:
        runtime.has(id_, "main", ContainerState.CREATED)
    await wake.wait()
    assert names.known == dict.fromkeys(ids, "main")


async def test_what_is_never_listed_is_asked_for_until_it_is_gone(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    names.need(["gone"])
    await eventually(lambda: len(runtime.asked) > 2)
    names.need(["c1"])
    await wake.wait()
    asked = len(runtime.asked)
    for _ in range(5):
        await asyncio.sleep(0.02)
    assert len(runtime.asked) == asked
    assert names.known == {"c1": "main"}


async def test_many_are_asked_for_at_once(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    ids = [f"c{number}" for number in range(FEW + 1)]
    for id_ in ids:
        runtime.has(id_, f"name-{id_}")
    names.need(ids)
    await wake.wait()
    assert names.known == {id_: f"name-{id_}" for id_ in ids}
    assert runtime.asked == [""]


async def test_a_silent_runtime_is_told_of_and_asked_again(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.failure = AWAY
    names.need(["c1"])
    await wake.wait()
    assert names.problem is AWAY
    runtime.failure = None
    await eventually(lambda: names.known)
    assert names.problem is None


async def test_an_event_spares_the_question(
    names: ContainerNames, runtime: FakeRuntime, start: Callable[[Awaitable[None]], None]
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    container = RuntimeContainer("c1", "main", ContainerState.CREATED)
    runtime.queue.put_nowait((container,))
    await eventually(lambda: names.known)
    assert names.need(["c1"]) == frozenset()
    assert runtime.asked == []


async def test_an_event_answers_what_was_asked(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.failure = AWAY
    names.need(["c1"])
    await wake.wait()
    wake.clear()
    names.learn([RuntimeContainer("c2", "other", ContainerState.CREATED)])
    assert not wake.is_set()
    names.learn([RuntimeContainer("c1", "main", ContainerState.CREATED)])
    assert wake.is_set()
    assert names.known["c1"] == "main"


async def test_a_broken_stream_of_events_is_opened_again(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    runtime.queue.put_nowait(AWAY)
    await wake.wait()
    container = RuntimeContainer("c1", "main", ContainerState.CREATED)
    runtime.queue.put_nowait((container,))
    await eventually(lambda: names.known)


async def test_a_runtime_without_events_is_not_asked_again(names: ContainerNames) -> None:
    await names.listen()
    assert names.problem is None


async def test_who_answers_is_news_once(
    names: ContainerNames, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> None:
    start(names.probe(0.01))
    await eventually(lambda: names.runtime_version is not None)
    assert wake.is_set()
    wake.clear()
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert not wake.is_set()


async def test_the_probe_learns_who_answers_and_that_nobody_does(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    start(names.probe(0.01))
    await eventually(lambda: names.runtime_version)
    assert names.runtime_version == RuntimeVersion("fake", "v1")
    runtime.failure = AWAY
    await eventually(lambda: names.problem)
    runtime.failure = None
    await eventually(lambda: names.problem is None)


async def test_what_has_no_cgroup_is_forgotten(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.pods.add("s1")
    names.need(["c1", "s1"])
    await eventually(lambda: len(names.known) == 2)
    names.forget_except(["c1"])
    assert names.known == {"c1": "main"}
