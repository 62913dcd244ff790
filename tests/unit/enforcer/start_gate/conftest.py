"""A node with a start gate, and what its runtime asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from numapin_enforcer.start_gate.gate import Gate
from support.fakes.worlds.agent_world import World
from support.fakes.worlds.gated_world import gated_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with gated_world(tmp_path) as made:
        yield made


@pytest.fixture
def gate(world: World) -> Gate:
    return world.followers.start_gates.gate


@pytest.fixture
def asked() -> Iterator[list[asyncio.Task[Any]]]:
    tasks: list[asyncio.Task[Any]] = []
    yield tasks
    for task in tasks:
        task.cancel()
