"""Containers that the runtime lists and the kubelet's cgroups do not have."""

import asyncio
from collections.abc import Awaitable, Callable, Collection

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import OutsideCgroup
from numapin_enforcer.runtime.interface import ContainerState, RuntimeContainer
from numapin_enforcer.runtime.outside_containers import (
    LEAST_SECONDS,
    LIST_SECONDS,
    OutsideContainers,
)
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.values.runtime import AWAY

IN, OUT = "a" * 64, "f" * 64
FOUND = OutsideCgroup(f"k8s.io/{OUT}", CpuSet([1]))


class World:
    def __init__(self, runtime: FakeRuntime, wake: asyncio.Event) -> None:
        self.runtime, self.clock = runtime, ManualClock()
        self.outside = OutsideContainers(runtime, wake, self.clock)
        self.inside, self.elsewhere = {IN}, {OUT: FOUND}
        self.searched: list[Collection[str]] = []
        for id_ in (IN, OUT):
            runtime.has(id_, "main")

    def find(self, ids: Collection[str]) -> dict[str, OutsideCgroup]:
        self.searched.append(ids)
        return {id_: one for id_, one in self.elsewhere.items() if id_ in ids}

    async def locate(self, *, needed: bool = True, resynced: bool = True) -> list[str]:
        """The paths found after the runtime was asked, if it is asked."""
        one = self.outside
        one.locate(self.inside, self.find, needed=needed, resynced=resynced)
        await self.clock.run_tasks()
        one.locate(self.inside, self.find, needed=needed, resynced=resynced)
        return [found.path for found in one.found]

    async def list_again(self) -> str:
        await self.clock.advance(LIST_SECONDS)
        await self.locate()
        return self.outside.note


@pytest.fixture
def world(
    runtime: FakeRuntime, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> World:
    made = World(runtime, wake)
    start(made.outside.run())
    return made


async def test_a_container_elsewhere_is_found_once_any_has_exclusive_cpus(
    world: World, wake: asyncio.Event
) -> None:
    assert (await world.locate(needed=False), world.runtime.asked) == ([], [])
    assert await world.locate() == [FOUND.path]
    assert wake.is_set()
    assert world.runtime.asked == [""]
    assert await world.locate(needed=False) == []


async def test_no_cgroup_is_searched_if_all_containers_are_inside(world: World) -> None:
    world.inside.add(OUT)
    assert (await world.locate(), world.searched) == ([], [])


async def test_the_kubelets_own_containers_elsewhere_are_told_apart(world: World) -> None:
    """The kubelet's cgroupRoot was changed, or the container runs in a virtual machine."""
    await world.locate()
    assert world.outside.strays == frozenset()
    for id_ in (OUT, "e" * 64):
        world.runtime.known[id_] = RuntimeContainer(id_, "main", ContainerState.RUNNING, id_[:1])
    await world.list_again()
    assert world.outside.strays == {("f", "main")}
    await world.list_again()
    assert world.outside.strays == {("f", "main"), ("e", "main")}
    await world.locate(needed=False)
    assert world.outside.strays == frozenset()


async def test_only_running_containers_count(world: World) -> None:
    world.runtime.has(OUT, "main", ContainerState.EXITED)
    assert (await world.locate(), world.searched) == ([], [])


async def test_its_cgroup_is_searched_again_at_each_resync(world: World) -> None:
    await world.locate()
    world.elsewhere = {}
    assert await world.locate(resynced=False) == [FOUND.path]
    assert await world.locate() == []


async def test_a_container_without_a_known_cgroup_is_doubted_after_two_lists(world: World) -> None:
    world.elsewhere = {}
    await world.locate()
    assert world.outside.note == ""
    assert await world.list_again() == (
        f"the runtime lists 1 container without a known cgroup ({OUT[:13]}), "
        "which may use exclusive CPUs"
    )
    del world.runtime.known[OUT]
    assert await world.list_again() == ""


async def test_a_container_that_ends_between_two_lists_is_not_doubted(world: World) -> None:
    world.elsewhere, world.inside = {}, {IN, OUT}
    await world.locate()
    world.inside = {IN}
    await world.locate()
    assert await world.list_again() == ""


async def test_a_runtime_that_does_not_answer_is_asked_again(world: World) -> None:
    world.runtime.failure = AWAY
    assert await world.locate() == []
    world.runtime.failure = None
    await world.clock.advance(LIST_SECONDS)
    assert await world.locate() == [FOUND.path]


async def test_a_newer_list_is_asked_for_once_and_wakes_the_agent(
    world: World, wake: asyncio.Event
) -> None:
    await world.locate()
    wake.clear()
    listed_at = world.outside.listed_at
    world.outside.need_since(None)
    world.outside.need_since(listed_at)
    await world.clock.advance(LEAST_SECONDS / 2)
    since = world.clock.monotonic()
    world.outside.need_since(since)
    await world.clock.run_tasks()
    assert (world.runtime.asked, wake.is_set()) == ([""], False), "not so soon"
    await world.clock.advance(LEAST_SECONDS / 2)
    for _ in range(3):
        world.outside.need_since(since)
        await world.clock.run_tasks()
    assert (world.runtime.asked, wake.is_set()) == (["", ""], True)
    assert world.outside.listed_at == listed_at + LEAST_SECONDS


async def test_no_list_is_asked_for_while_none_is_needed(world: World) -> None:
    await world.locate(needed=False)
    world.outside.need_since(world.clock.monotonic())
    await world.clock.run_tasks()
    assert world.runtime.asked == []
