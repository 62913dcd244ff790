"""Workers of a queue: what becomes of a key whose work ends, fails or is interrupted."""

import asyncio
from functools import partial

import pytest

from numapin_client.errors import ClientError, ConnectionFailedError
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import is_idle

HOUR = 3600.0


class Bench:
    """The work on a key fails with its errors first, and is noted then."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue = WorkQueue(partial(Backoff, 1.0, HOUR), 0.0, self.clock)
        self.errors: dict[str, list[Exception]] = {}
        self.worked: list[str] = []
        self.failed: list[str] = []
        self.broken: list[str] = []
        self.most_seconds = HOUR

    async def step(self, key: str) -> None:
        if errors := self.errors.get(key):
            raise errors.pop(0)
        self.worked.append(key)

    def note_failure(self, key: str, error: ClientError, delay_seconds: float) -> None:
        self.failed.append(f"{key} {error.retry_after_seconds} {delay_seconds <= HOUR}")

    def note_defect(self, key: str, error: Exception) -> None:
        self.broken.append(f"{key} {error!r}")

    async def work(self) -> None:
        await self.queue.serve(
            self.step, self.note_failure, self.note_defect, lambda _: self.most_seconds
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_keys_are_worked_on_until_none_waits(bench: Bench) -> None:
    for key in "abc":
        bench.queue.add(key)
    async with running(bench.work()):
        await bench.clock.run_tasks()
    assert (bench.worked, is_idle(bench.queue)) == (["a", "b", "c"], True)


async def test_errors_delay_their_own_key_and_are_passed_on(bench: Bench) -> None:
    bench.errors = {"a": [ConnectionFailedError("GET", "refused")], "b": [ZeroDivisionError("x")]}
    for key in "abc":
        bench.queue.add(key)
    async with running(bench.work()):
        await bench.clock.run_tasks()
        assert bench.worked == ["c"]
        assert bench.failed == ["a None True"]
        assert bench.broken == ["b ZeroDivisionError('x')"]
        await bench.clock.advance(HOUR)
    assert sorted(bench.worked) == ["a", "b", "c"]


async def test_a_failure_waits_no_longer_than_its_kind_allows(bench: Bench) -> None:
    bench.most_seconds = 0.001
    bench.errors = {"a": [ConnectionFailedError("GET", "refused")] * 20}
    bench.queue.add("a")
    async with running(bench.work()):
        await bench.clock.advance(1)
    assert bench.worked == ["a"]


async def test_a_key_whose_work_is_interrupted_waits_again(bench: Bench) -> None:
    bench.queue.add("a")
    stuck = bench.queue.serve(lambda _: asyncio.Event().wait(), bench.note_failure, print)
    async with running(stuck):
        await bench.clock.run_tasks()
    async with running(bench.work()):
        await bench.clock.run_tasks()
    assert bench.worked == ["a"]
