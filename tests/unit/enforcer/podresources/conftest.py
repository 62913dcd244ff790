"""A kubelet that is asked, on a clock that a test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.fakes.kubelets.asked import GPUS, World
from support.fakes.runtime import FakeRuntime


@pytest.fixture
def world(
    tmp_path: Path,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> World:
    made = World(tmp_path, runtime, wake)
    start(made.asker.run())
    return made


@pytest.fixture
async def gpus(world: World) -> World:
    """A node with two GPUs, whose kubelet has been asked."""
    world.kubelet.devices = list(GPUS)
    await world.make_pass()
    world.wake.clear()
    world.pop_asked()
    return world
