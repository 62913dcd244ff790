"""What waits for the runtime, beside the loop: names and records."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from enforcer_node import eventually
from fake_runtime import FakeRuntime

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer import recorder as recorder_module
from numapin_enforcer.cri import (
    ContainerState,
    CriRefusedError,
    CriUnavailableError,
    EventKind,
    RuntimeContainer,
    RuntimeEvent,
    RuntimeRecord,
    RuntimeVersion,
)
from numapin_enforcer.names import FEW, ContainerNames
from numapin_enforcer.recorder import Recorder

ONE = RuntimeRecord(CpuSet.parse("1"))
TWO = RuntimeRecord(CpuSet.parse("2"), MemSet.parse("0"))
AWAY = CriUnavailableError(Path("/run/x.sock"), "no answer in 5 s")


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def wake() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def start() -> AsyncIterator[Callable[[Awaitable[None]], None]]:
    """Run something beside the test, and end it with the test."""
    tasks: list[asyncio.Future[None]] = []
    yield lambda waiting: tasks.append(asyncio.ensure_future(waiting))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def names(
    runtime: FakeRuntime, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> ContainerNames:
    made = ContainerNames(runtime, wake)
    start(made.run())
    return made


@pytest.fixture
def recorder(
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Recorder:
    monkeypatch.setattr(recorder_module, "NOT_STARTED_SECONDS", 0.01)
    made = Recorder(runtime, wake)
    start(made.run())
    return made


async def test_a_name_is_asked_for_once_and_wakes_the_loop(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    assert names.need(["c1"]) == {"c1"}
    await wake.wait()
    assert names.known == {"c1": "main"}
    assert names.need(["c1"]) == frozenset()
    assert runtime.asked == ["c1"]


async def test_what_is_not_listed_is_a_sandbox(names: ContainerNames, wake: asyncio.Event) -> None:
    names.need(["s1"])
    await wake.wait()
    assert names.known == {"s1": ""}


async def test_many_are_asked_for_at_once(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    ids = [f"c{number}" for number in range(FEW + 1)]
    for id_ in ids:
        runtime.has(id_, f"name-{id_}")
    names.need(ids)
    await wake.wait()
    assert names.known == {id_: f"name-{id_}" for id_ in ids}
    assert runtime.asked == [""]


async def test_a_silent_runtime_is_told_of_and_asked_again(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.failure = AWAY
    names.need(["c1"])
    await wake.wait()
    assert names.problem is AWAY
    runtime.failure = None
    await eventually(lambda: names.known)
    assert names.problem is None


async def test_an_event_spares_the_question(
    names: ContainerNames, runtime: FakeRuntime, start: Callable[[Awaitable[None]], None]
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    container = RuntimeContainer("c1", "main", ContainerState.CREATED)
    runtime.queue.put_nowait(RuntimeEvent(EventKind.CREATED, "c1", (container,)))
    await eventually(lambda: names.known)
    assert names.need(["c1"]) == frozenset()
    assert runtime.asked == []


async def test_an_event_answers_what_was_asked(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.failure = AWAY
    names.need(["c1"])
    await wake.wait()
    wake.clear()
    names.learn([RuntimeContainer("c2", "other", ContainerState.CREATED)])
    assert not wake.is_set()
    names.learn([RuntimeContainer("c1", "main", ContainerState.CREATED)])
    assert wake.is_set()
    assert names.known["c1"] == "main"


async def test_a_broken_stream_of_events_is_opened_again(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    runtime.queue = asyncio.Queue()
    start(names.listen())
    runtime.queue.put_nowait(AWAY)
    await wake.wait()
    container = RuntimeContainer("c1", "main", ContainerState.CREATED)
    runtime.queue.put_nowait(RuntimeEvent(EventKind.CREATED, "c1", (container,)))
    await eventually(lambda: names.known)


async def test_a_runtime_without_events_is_not_asked_again(names: ContainerNames) -> None:
    await names.listen()
    assert names.problem is None


async def test_who_answers_is_news_once(
    names: ContainerNames, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> None:
    start(names.probe(0.01))
    await eventually(lambda: names.version is not None)
    assert wake.is_set()
    wake.clear()
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert not wake.is_set()


async def test_the_probe_learns_who_answers_and_that_nobody_does(
    names: ContainerNames,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    start(names.probe(0.01))
    await eventually(lambda: names.version)
    assert names.version == RuntimeVersion("fake", "v1")
    runtime.failure = AWAY
    await eventually(lambda: names.problem)
    runtime.failure = None
    await eventually(lambda: names.problem is None)


async def test_what_has_no_cgroup_is_forgotten(
    names: ContainerNames, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    names.need(["c1", "s1"])
    await wake.wait()
    names.forget_all_but(["c1"])
    assert names.known == {"c1": "main"}


async def test_a_record_is_told_once(recorder: Recorder, runtime: FakeRuntime) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    recorder.want({"c1": ONE})
    recorder.want({"c1": TWO})
    await eventually(lambda: recorder.told == {"c1": TWO})
    assert runtime.told == [("c1", ONE), ("c1", TWO)]


async def test_a_container_that_has_not_started_is_waited_for(
    recorder: Recorder, runtime: FakeRuntime
) -> None:
    runtime.has("c1", "main", ContainerState.CREATED)
    recorder.want({"c1": ONE})
    await eventually(lambda: len(runtime.asked) > 2)
    assert runtime.told == []
    runtime.has("c1", "main")
    await eventually(lambda: runtime.told == [("c1", ONE)])


@pytest.mark.parametrize("state", [ContainerState.EXITED, None], ids=["ended", "gone"])
async def test_a_container_that_ended_is_let_be(
    recorder: Recorder, runtime: FakeRuntime, state: ContainerState | None
) -> None:
    if state:
        runtime.has("c1", "main", state)
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    assert (runtime.told, recorder.problems) == ([], {})


async def test_a_refusal_is_told_of_and_tried_again(
    recorder: Recorder, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.failure = CriRefusedError("UNKNOWN: half done")
    recorder.want({"c1": ONE})
    await wake.wait()
    assert recorder.problems == {"c1": runtime.failure}
    wake.clear()
    runtime.failure = None
    await wake.wait()
    assert (recorder.problems, recorder.told) == ({}, {"c1": ONE})


async def test_what_is_wanted_no_more_is_forgotten(
    recorder: Recorder, runtime: FakeRuntime
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    recorder.want({})
    assert recorder.told == {}


async def test_what_it_is_to_remember_no_more_is_not_told(
    recorder: Recorder, runtime: FakeRuntime
) -> None:
    """A runtime that is told an older set writes that one, over the newer."""
    for id_ in ("c1", "c2"):
        runtime.has(id_, "main")
    runtime.answers.clear()
    recorder.want({"c1": ONE, "c2": ONE})
    await eventually(lambda: runtime.asked)
    recorder.want({"c1": TWO, "c2": TWO})
    runtime.answers.set()
    await eventually(lambda: recorder.told == {"c1": TWO, "c2": TWO})
    assert runtime.told == [("c1", TWO), ("c2", TWO)]


async def test_what_the_runtime_may_write_again_lingers_until_it_was_told(
    recorder: Recorder, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    assert (recorder.lingering, wake.is_set()) == ({}, False)
    runtime.records.clear()
    recorder.want({"c1": TWO})
    assert recorder.lingering == {"c1": ONE.cpus}
    await eventually(lambda: recorder.tried == {"c1": TWO})
    assert recorder.lingering == {"c1": ONE.cpus | TWO.cpus}
    runtime.failure = CriRefusedError("UNKNOWN: half done")
    runtime.records.set()
    await wake.wait()
    assert recorder.lingering == {"c1": ONE.cpus | TWO.cpus}
    wake.clear()
    runtime.failure = None
    await wake.wait()
    assert recorder.lingering == {}


async def test_what_was_being_told_lingers_when_something_else_is_wanted(
    recorder: Recorder, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.records.clear()
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.tried)
    recorder.want({"c1": TWO})
    assert recorder.lingering == {"c1": ONE.cpus}
    runtime.records.set()
    await wake.wait()
    assert (recorder.lingering, runtime.told) == ({}, [("c1", ONE), ("c1", TWO)])


async def test_at_rest_nothing_is_told_and_nothing_forgotten(
    recorder: Recorder, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    runtime.failure = CriRefusedError("UNKNOWN: half done")
    runtime.answers.clear()
    recorder.want({"c1": TWO})
    recorder.rest()
    runtime.answers.set()
    await asyncio.sleep(0.02)
    assert recorder.problems == {}
    runtime.failure = None
    recorder.want({"c1": ONE})
    await asyncio.sleep(0.02)
    assert runtime.told == [("c1", ONE)]
