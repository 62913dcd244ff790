"""What the tests of the runtime share: a clock, an updater and container names, all running."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime


@pytest.fixture
def updater(
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> RuntimeUpdater:
    runtime.has("c1", "main")
    made = RuntimeUpdater(runtime, wake, clock)
    start(made.run())
    return made


@pytest.fixture
def names(
    runtime: FakeRuntime,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> ContainerNames:
    made = ContainerNames(runtime, wake, clock)
    start(made.run())
    return made
