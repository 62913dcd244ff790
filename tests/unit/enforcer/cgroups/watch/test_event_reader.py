"""When events are read: only while somebody listens, and in a storm not one by one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from numapin_enforcer.cgroups.watch.event_reader import EventReader
from numapin_enforcer.schedule import READ_BURST, READS_PER_SECOND, Schedule

DESCRIPTOR = 7


class Source:
    """A watch; `queued` holds for each event whether it matters."""

    def __init__(self) -> None:
        self.queued: list[bool] = []
        self.reads = 0
        self.was_empty = True

    def fileno(self) -> int:
        return DESCRIPTOR

    def collect(self) -> bool:
        self.reads += 1
        self.was_empty = not self.queued
        found, self.queued = any(self.queued), []
        return found


class Loop:
    """An event loop that turns when a test says so; its selector is level-triggered."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reader: Callable[[], None] | None = None
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self.now_seconds = 0.0

    def add_reader(self, fd: int, callback: Callable[[], None], /) -> None:
        assert fd == DESCRIPTOR
        self._reader = callback

    def remove_reader(self, fd: int, /) -> bool:
        assert fd == DESCRIPTOR
        self._reader = None
        return True

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Any:
        timer = (self.now_seconds + delay, callback)
        self._timers.append(timer)

        def cancel() -> None:
            self._timers = [one for one in self._timers if one is not timer]

        return SimpleNamespace(cancel=cancel)

    @property
    def turns_at_once(self) -> bool:
        """Whether the next turn does not wait: the descriptor is readable and somebody reads."""
        return self._reader is not None and bool(self._source.queued)

    def turn(self) -> None:
        if self._reader is not None and self._source.queued:
            self._reader()

    def wait(self, seconds: float) -> None:
        self.now_seconds += seconds
        for timer in [one for one in self._timers if one[0] <= self.now_seconds]:
            self._timers.remove(timer)
            timer[1]()
        self.turn()


class World:
    """A reader, and how often it reported."""

    def __init__(self) -> None:
        self.source, self.schedule, self.news = Source(), Schedule(10, 0.1), 0
        self.loop = Loop(self.source)
        self.reader = EventReader(self.loop, self.source, self._note, self._rest)
        self.reader.listen()

    def _note(self, _spent_seconds: float) -> None:
        self.news += 1

    def _rest(self, _spent_seconds: float) -> float:
        self.schedule.note_vain_read(0.0, self.loop.now_seconds)
        return self.schedule.vain_rest_seconds(self.loop.now_seconds)

    def event(self, *, matters: bool) -> None:
        self.source.queued.append(matters)
        self.loop.turn()


@pytest.fixture
def world() -> World:
    return World()


def test_an_event_that_matters_is_reported_once_until_somebody_listens_again(
    world: World,
) -> None:
    for _ in range(3):
        world.event(matters=True)
    assert (world.news, world.source.reads, world.loop.turns_at_once) == (1, 1, False)
    world.reader.listen()
    world.loop.turn()
    assert world.news == 2


def test_an_event_that_does_not_matter_is_read_and_not_reported(world: World) -> None:
    world.event(matters=False)
    assert (world.news, world.source.reads, world.loop.turns_at_once) == (0, 1, False)
    world.event(matters=True)
    assert world.news == 1


def test_a_paused_reader_reads_nothing_and_the_loop_does_not_turn(world: World) -> None:
    world.reader.pause()
    for _ in range(100):
        world.event(matters=True)
    assert (world.source.reads, world.loop.turns_at_once) == (0, False)


@pytest.mark.parametrize("events_per_second", [1_000, 100_000])
def test_a_storm_of_events_that_do_not_matter_is_read_in_parts(
    world: World, events_per_second: int
) -> None:
    for _ in range(2 * events_per_second):
        world.loop.wait(1 / events_per_second)
        world.event(matters=False)
    assert world.news == 0
    assert world.source.reads <= READ_BURST + 2 * READS_PER_SECOND + 1


def test_an_event_that_matters_is_found_in_such_a_storm(world: World) -> None:
    for _ in range(1_000):
        world.event(matters=False)
    world.event(matters=True)
    assert world.news == 0
    world.loop.wait(1 / READS_PER_SECOND + 1e-6)
    assert world.news == 1


def test_after_such_a_storm_nothing_is_read_until_the_next_event(world: World) -> None:
    for _ in range(1_000):
        world.event(matters=False)
    for _ in range(10):
        world.loop.wait(1.0)
    reads = world.source.reads
    world.loop.wait(1.0)
    assert world.source.reads == reads
    world.event(matters=True)
    assert world.news == 1


def test_a_rest_ends_with_a_pause(world: World) -> None:
    """Between two times of listening nothing is read, whatever was planned before."""
    for _ in range(1_000):
        world.event(matters=False)
    world.reader.pause()
    reads = world.source.reads
    world.loop.wait(10)
    assert world.source.reads == reads
