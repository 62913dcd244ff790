"""Which runtime answers, and when it stops to."""

import asyncio
from collections.abc import Awaitable, Callable

from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.interface import (
    ContainerState,
    RuntimeContainer,
    RuntimeVersion,
)
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.values.runtime import AWAY

MAIN = RuntimeContainer("c1", "main", ContainerState.CREATED)


async def test_the_version_wakes_the_loop_once(
    names: ContainerNames,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    start(names.probe(30))
    await clock.run_tasks()
    assert names.runtime_version == RuntimeVersion("fake", "v1")
    assert wake.is_set()
    wake.clear()
    await clock.advance(300)
    assert not wake.is_set()


async def test_the_probe_notices_when_the_runtime_stops_and_starts_to_answer(
    names: ContainerNames,
    runtime: FakeRuntime,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    start(names.probe(30))
    await clock.run_tasks()
    runtime.failure = AWAY
    await clock.advance(30)
    assert names.obstacles()
    runtime.failure = None
    await clock.advance(30)
    assert not names.obstacles()


async def test_an_unexpected_exception_of_the_probe_is_reported_and_retried(
    names: ContainerNames,
    runtime: FakeRuntime,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.failure = ZeroDivisionError("injected")
    start(names.probe(30))
    await clock.run_tasks()
    (obstacle,) = names.obstacles()
    assert obstacle.reason == "InternalError"
    runtime.failure = None
    await clock.advance(0.5)
    assert names.runtime_version == RuntimeVersion("fake", "v1")
    assert not names.obstacles()
