"""Which containers had their sets before their first process ran."""

import asyncio
from pathlib import Path
from typing import Any

from numapin_enforcer.start_gate.births import PINNED, SHARED
from numapin_enforcer.start_gate.gate import START_SECONDS, Gate
from support.fakes.worlds.agent_world import World
from support.fakes.worlds.gated_world import (
    NEW,
    NEW_POD,
    UID,
    ask,
    assign,
    container,
    line,
    pass_made,
    start,
)


async def test_a_container_with_its_sets_is_born_pinned(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]], tmp_path: Path
) -> None:
    await assign(world, line(), shared="0-1")
    await ask(world, gate, asked, container())
    await start(world, gate, "2")
    assert gate.starts == {PINNED: 1}
    await pass_made(world)
    status = world.followers.start_gates.status(world.last)
    assert status is not None
    assert (status.born_pinned, status.born_shared) == (1, ("exclusive/c",))
    assert (tmp_path / "born-pinned").read_text() == f"{NEW}\n"


async def test_a_container_that_was_assigned_late_is_not(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(1.1)
    assert answer.result() is None
    await start(world, gate, "")
    assert gate.starts == {SHARED: 1}
    await assign(world, line(), shared="0-1")
    status = world.followers.start_gates.status(world.last)
    assert status is not None
    assert status.born_pinned == 0
    assert f"{UID}/main" in status.born_shared
    assert str(world.model.read().cgroups[f"{NEW_POD}/{NEW}"].effective_cpus) == "2"


async def test_a_container_that_is_assigned_between_is_pinned_before_it_starts(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(1.1)
    assert answer.result() is None
    await assign(world, line(), shared="0-1")
    await start(world, gate, "")
    assert gate.starts == {PINNED: 1}


async def test_a_container_that_does_not_wait_is_not_counted(world: World, gate: Gate) -> None:
    await start(world, gate, "", container(cpu_shares=512))
    assert gate.starts == {}


async def test_a_container_without_a_cgroup_is_starting_until_it_is_too_late(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    """Of many that start at once, some are made long before they have a cgroup."""
    await assign(world, line(), shared="0-1")
    await ask(world, gate, asked, container())
    await world.clock.advance(START_SECONDS - 1)
    gate.forget_except(())
    assert gate.starting() == {NEW}
    await world.clock.advance(2)
    gate.forget_except(())
    assert gate.starting() == frozenset()
