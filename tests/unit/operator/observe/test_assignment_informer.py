"""NodeAssignments come from a watch and as answers to our own writes: the newest state counts."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_client.cache import informer as informer_module
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.client import ApiClient, connect
from numapin_client.resources import NODE_ASSIGNMENTS, Json
from numapin_daemon.slices import Slices
from numapin_operator.observe import informers
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.informers import build_informers
from support.fakes.apiserver import FakeApiServer, Watcher
from support.real.waiting import eventually, running
from support.values.informers import in_sync

FAST = InformerTiming(
    session_seconds=(0.2, 0.2),
    grace_seconds=0.1,
    backoff_base_seconds=0.001,
    backoff_cap_seconds=0.002,
    chunk_limit=2,
)
GENERATIONS = itertools.count(1)


class World:
    """An informer of NodeAssignments, its cache, and the nodes that it has woken."""

    def __init__(self, server: FakeApiServer, api: ApiClient) -> None:
        self.server, self.woken = server, list[str]()
        self.state = ClusterState(lambda name, urgent=False: self.woken.append(name))
        self.informer: Informer[Any] = build_informers(api, self.state)["nodeassignments"]
        self.answers: list[AssignmentView] = []
        self.cut_off: list[Watcher] = []
        self.back_up()

    def put(self, name: str) -> Json:
        """Write it as another client does."""
        metadata = {"name": name, "generation": next(GENERATIONS)}
        return self.server.put(NODE_ASSIGNMENTS, {"metadata": metadata})

    def write(self, name: str) -> None:
        """Write it ourselves; the answer is on its way."""
        self.answers.append(AssignmentView.decode(self.put(name)))

    def answer(self) -> None:
        """Take in the answers to our own writes."""
        while self.answers:
            self.state.put_assignment(self.answers.pop())

    def remove(self, name: str) -> None:
        if (NODE_ASSIGNMENTS.collection_path(), "", name) in self.server.objects:
            self.server.remove(NODE_ASSIGNMENTS, name)

    def back_up(self) -> None:
        self.backup = dict(self.server.objects), self.server.version

    def restore(self) -> None:
        """Come back with the etcd of the backup."""
        self.server.cut()
        self.cut_off = list(self.server.watchers)
        objects, self.server.version = self.backup
        self.server.objects, self.server.oldest = dict(objects), self.server.version
        self.server.history.clear()
        self.server.snapshots.clear()

    def watches(self) -> bool:
        """Whether a watch is open; a server is not replaced between a list and its watch."""
        return bool(self.server.watchers) and self.agrees()

    def watches_again(self) -> bool:
        """Whether the informer has noticed, before the versions pass those that it has seen."""
        return any(one not in self.cut_off for one in self.server.watchers) and self.agrees()

    def agrees(self) -> bool:
        found = {name: (one.uid, one.version) for name, one in self.state.assignments.items()}
        truth = {
            body["metadata"]["name"]: (
                body["metadata"]["uid"],
                int(body["metadata"]["resourceVersion"]),
            )
            for body in self.server.objects.values()
        }
        return found == truth and in_sync(self.informer)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "ASSIGNMENT_TIMING", FAST)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with FakeApiServer() as server, connect(server.login) as api:
        made = World(server, api)
        made.put("a")
        async with running(made.informer.run()):
            await eventually(lambda: bool(server.watchers))
            yield made


async def test_our_own_write_is_not_decoded_again_when_the_watch_delivers_it(world: World) -> None:
    world.write("a")
    (own,) = world.answers
    world.answer()
    world.woken.clear()
    await eventually(lambda: world.informer.items != {} and world.server.watchers != [])
    world.put("b")
    await eventually(world.agrees)
    assert world.state.assignments["a"] is own
    assert world.woken == ["b"]


async def test_a_list_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NodeAssignment with a new topology takes milliseconds."""
    monkeypatch.setattr(informer_module, "Slices", partial(Slices, slice_seconds=0.0))
    world.server.forget_history()
    for number in range(40):
        world.put(f"n-{number}")
    world.server.forget_history()
    world.server.cut()
    seen: set[int] = set()
    while 41 not in seen:
        seen.add(len(world.state.assignments))
        await asyncio.sleep(0)
    assert len(seen) > 30


async def test_what_only_a_write_showed_and_is_gone_is_dropped_by_the_next_list(
    world: World,
) -> None:
    """Created by us and deleted by another while no watch worked: no event will ever say so."""
    world.server.cut()
    world.write("b")
    world.remove("b")
    world.server.forget_history()
    world.answer()
    assert "b" in world.state.assignments
    await eventually(world.agrees)


async def test_a_deletion_does_not_drop_what_was_created_since(world: World) -> None:
    world.remove("a")
    world.write("a")
    world.answer()
    own = world.state.assignments["a"]
    world.put("b")
    await eventually(world.agrees)
    assert world.state.assignments["a"] is own


async def test_a_write_that_a_restored_server_has_lost_is_forgotten(world: World) -> None:
    """Else each later write would be refused, until the server's versions pass the lost one."""
    world.server.cut()
    world.back_up()
    world.write("a")
    world.answer()
    world.restore()
    await eventually(world.agrees)
    world.put("a")
    await eventually(world.agrees)


Step = Callable[[World, str], object]
STEPS: dict[str, Step] = {
    "put": World.put,
    "write": World.write,
    "answer": lambda world, _: world.answer(),
    "remove": World.remove,
    "cut": lambda world, _: world.server.cut(),
    "end": lambda world, _: world.server.send(None),
    "forget": lambda world, _: world.server.forget_history(),
    "gone as status": lambda world, _: setattr(world.server, "gone_as_event", False),
    "back up": lambda world, _: world.back_up(),
    "restore": lambda world, _: world.restore(),
}
PAUSES = st.sampled_from([0.0, 0.0, 0.001, 0.01])
STEP = st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from("abcd"), PAUSES)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=25))
def test_the_cache_ends_up_as_the_servers_state(steps: list[tuple[str, str, float]]) -> None:
    asyncio.run(_live_through(steps))


async def _live_through(steps: list[tuple[str, str, float]]) -> None:
    async with FakeApiServer() as server, connect(server.login) as api:
        world = World(server, api)
        async with running(world.informer.run()):
            for step, name, pause_seconds in steps:
                if step == "restore":
                    world.answer()  # what an old server answers does not come after a new one
                    await eventually(world.watches)
                STEPS[step](world, name)
                if step == "restore":
                    await eventually(world.watches_again)
                await asyncio.sleep(pause_seconds)
            world.answer()
            await eventually(world.agrees)
