"""An assignment is gone once the API server has said so for a while, and a read confirms it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from numapin_api.names import ALPHA
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import Json, Key, Resource
from numapin_enforcer.assignment.watch import (
    GONE_SECONDS,
    KIND_GONE_SECONDS,
    LOOK_SECONDS,
    AssignmentWatch,
)
from support.fakes.manual_clock import ManualClock

BODY = {"metadata": {"name": "n", "uid": "u", "generation": 1}, "spec": {"mode": "None"}}


class Api(ApiClient):
    """Answers a read with `answer`, or with the object."""

    def __init__(self) -> None:
        self.answer: Exception | None = not_found()
        self.reads = 0
        self.alpha = False
        """Whether the CRD of 0.1 serves the object, in its version alone."""

    async def get(self, resource: Resource, key: Key) -> Json:
        self.reads += 1
        if self.alpha and resource.version == ALPHA:
            return BODY
        if self.answer is not None:
            raise self.answer
        return BODY


class World:
    """A watch whose informer and API server say what a test wants."""

    def __init__(self, start: Callable[[Awaitable[None]], None]) -> None:
        self.clock, self.observed = ManualClock(), list[Any]()
        self.api, wake = Api(), asyncio.Event()
        self.watch = AssignmentWatch(self.api, "n", self.observed.append, wake, self.clock)
        self.informer = self.watch._informer
        self.informer.synced.set()
        self.watch._absence.request()
        start(self.watch._absence.run())

    async def wait(self, seconds: float) -> bool:
        """Let time pass; returns whether the object counts as gone."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            await self.clock.advance(LOOK_SECONDS)
        return self.watch.gone


def not_found() -> NotFoundError:
    return NotFoundError.__new__(NotFoundError)


@pytest.fixture
def world(start: Callable[[Awaitable[None]], None]) -> World:
    return World(start)


async def test_a_missing_object_is_gone_after_a_while(world: World) -> None:
    assert not await world.wait(GONE_SECONDS - LOOK_SECONDS)
    assert await world.wait(2 * LOOK_SECONDS)
    assert (world.api.reads, world.observed) == (2, [None])  # in either version
    world.watch._take([Change(Key("n"), None, BODY)])
    assert not world.watch.gone


async def test_an_object_that_a_direct_read_finds_is_not_gone(world: World) -> None:
    world.api.answer = None
    assert not await world.wait(5 * GONE_SECONDS)
    assert world.api.reads > 1


async def test_an_api_server_that_does_not_answer_says_nothing(world: World) -> None:
    for _ in range(10):
        assert not await world.wait(GONE_SECONDS - 2 * LOOK_SECONDS)
        world.informer.problem = ClientError("away")
        assert not await world.wait(3 * LOOK_SECONDS)
        world.informer.problem = None
    world.informer.synced.clear()
    assert not await world.wait(5 * GONE_SECONDS)


async def test_a_failed_read_does_not_confirm_it(world: World) -> None:
    world.api.answer = ClientError("away")
    assert not await world.wait(5 * GONE_SECONDS)


async def test_a_missing_kind_counts_after_a_longer_while(world: World) -> None:
    world.watch.body = BODY
    world.informer.problem = not_found()
    assert not await world.wait(KIND_GONE_SECONDS - LOOK_SECONDS)
    assert await world.wait(2 * LOOK_SECONDS)
    assert world.watch.body is None


async def test_what_only_an_older_crd_serves_is_not_gone(world: World) -> None:
    """Else a node of 0.1's CRDs would give everything back after ten minutes."""
    world.watch.body, world.api.alpha = BODY, True
    world.informer.problem = not_found()
    assert not await world.wait(3 * KIND_GONE_SECONDS)
    assert world.watch.body is BODY
    world.api.alpha = False
    assert await world.wait(2 * KIND_GONE_SECONDS)


async def test_an_object_that_could_not_be_observed_is_observed_again(
    start: Callable[[Awaitable[None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, its problem stayed until the next change, and the object was never observed."""
    clock, observed, failures = ManualClock(), list[Any](), [ZeroDivisionError("once")]

    def observe(body: Any) -> None:
        if failures:
            raise failures.pop()
        observed.append(body)

    watch = AssignmentWatch(Api(), "n", observe, asyncio.Event(), clock)
    changes = [[Change(Key("n"), None, BODY)]]

    async def follow() -> None:
        if changes:
            watch._take(changes.pop())
        await asyncio.Event().wait()

    monkeypatch.setattr(watch._informer, "run", follow)
    watch._informer.synced.set()
    watch._follower.request()
    start(watch._follower.run())
    await clock.run_tasks()
    assert watch.problem == "once"
    await clock.advance(60)
    assert (watch.problem, observed) == ("", [BODY])
