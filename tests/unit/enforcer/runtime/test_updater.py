"""What the runtime is told to remember, beside the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime import updater as recorder_module
from numapin_enforcer.runtime.client import (
    ContainerResources,
    ContainerState,
    CriRefusedError,
    CriUnavailableError,
)
from numapin_enforcer.runtime.updater import RuntimeUpdater
from support.fakes.runtime import FakeRuntime
from support.real.enforcer_node import eventually

ONE = ContainerResources(CpuSet.parse("1"))
TWO = ContainerResources(CpuSet.parse("2"), MemSet.parse("0"))
AWAY = CriUnavailableError(Path("/run/x.sock"), "no answer in 5 s")


@pytest.fixture
def recorder(
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> RuntimeUpdater:
    monkeypatch.setattr(recorder_module, "NOT_STARTED_SECONDS", 0.01)
    made = RuntimeUpdater(runtime, wake)
    start(made.run())
    return made


async def test_a_record_is_told_once(recorder: RuntimeUpdater, runtime: FakeRuntime) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    recorder.want({"c1": ONE})
    recorder.want({"c1": TWO})
    await eventually(lambda: recorder.told == {"c1": TWO})
    assert runtime.told == [("c1", ONE), ("c1", TWO)]


async def test_a_container_that_has_not_started_is_waited_for(
    recorder: RuntimeUpdater, runtime: FakeRuntime
) -> None:
    runtime.has("c1", "main", ContainerState.CREATED)
    recorder.want({"c1": ONE})
    await eventually(lambda: len(runtime.asked) > 2)
    assert runtime.told == []
    runtime.has("c1", "main")
    await eventually(lambda: runtime.told == [("c1", ONE)])


@pytest.mark.parametrize("state", [ContainerState.EXITED, None], ids=["ended", "gone"])
async def test_a_container_that_ended_is_let_be(
    recorder: RuntimeUpdater, runtime: FakeRuntime, state: ContainerState | None
) -> None:
    if state:
        runtime.has("c1", "main", state)
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    assert (runtime.told, recorder.problems) == ([], {})


async def test_a_refusal_is_told_of_and_tried_again(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
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
    recorder: RuntimeUpdater, runtime: FakeRuntime
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    recorder.want({})
    assert recorder.told == {}


async def test_what_it_is_to_remember_no_more_is_not_told(
    recorder: RuntimeUpdater, runtime: FakeRuntime
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
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    assert (recorder.stale_cpus, wake.is_set()) == ({}, False)
    runtime.records.clear()
    recorder.want({"c1": TWO})
    assert recorder.stale_cpus == {"c1": ONE.cpus}
    await eventually(lambda: recorder.tried == {"c1": TWO})
    assert recorder.stale_cpus == {"c1": ONE.cpus | TWO.cpus}
    runtime.failure = CriRefusedError("UNKNOWN: half done")
    runtime.records.set()
    await wake.wait()
    assert recorder.stale_cpus == {"c1": ONE.cpus | TWO.cpus}
    wake.clear()
    runtime.failure = None
    await wake.wait()
    assert recorder.stale_cpus == {}


async def test_what_was_being_told_lingers_when_something_else_is_wanted(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    runtime.records.clear()
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.tried)
    recorder.want({"c1": TWO})
    assert recorder.stale_cpus == {"c1": ONE.cpus}
    runtime.records.set()
    await wake.wait()
    assert (recorder.stale_cpus, runtime.told) == ({}, [("c1", ONE), ("c1", TWO)])


async def test_what_others_may_have_told_it_lingers_until_it_was_told_again(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    recorder.note_external_change("c1", TWO.cpus)
    recorder.want({"c1": ONE})
    assert recorder.stale_cpus == {"c1": TWO.cpus | ONE.cpus}
    await wake.wait()
    assert (recorder.stale_cpus, runtime.told) == ({}, [("c1", ONE), ("c1", ONE)])


async def test_what_comes_while_it_is_being_told_is_told_again(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    """Nobody knows which of the two it heard last."""
    runtime.has("c1", "main")
    runtime.records.clear()
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.tried)
    recorder.note_external_change("c1", TWO.cpus)
    runtime.records.set()
    await wake.wait()
    assert (recorder.stale_cpus, runtime.told) == ({}, [("c1", ONE), ("c1", ONE)])


async def test_a_container_of_which_it_was_never_told_is_not_doubted(
    recorder: RuntimeUpdater, runtime: FakeRuntime
) -> None:
    recorder.note_external_change("c1", TWO.cpus)
    recorder.want({})
    assert (recorder.stale_cpus, runtime.asked) == ({}, [])


async def test_what_an_earlier_process_told_it_lingers_until_it_was_told_again(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": TWO}, {"c1": ONE})
    assert recorder.stale_cpus == {"c1": ONE.cpus}
    await wake.wait()
    assert (recorder.stale_cpus, runtime.told) == ({}, [("c1", TWO)])
    recorder.want({"c1": TWO}, {"c1": ONE})
    assert recorder.stale_cpus == {}


async def test_what_an_earlier_process_told_it_is_told_again_though_it_is_the_same(
    recorder: RuntimeUpdater, runtime: FakeRuntime
) -> None:
    """The earlier process may have ended before it did."""
    runtime.has("c1", "main")
    recorder.want({"c1": ONE}, {"c1": ONE})
    assert recorder.stale_cpus == {}
    await eventually(lambda: recorder.told)
    assert runtime.told == [("c1", ONE)]


async def test_at_rest_nothing_is_told_and_nothing_forgotten(
    recorder: RuntimeUpdater, runtime: FakeRuntime, wake: asyncio.Event
) -> None:
    runtime.has("c1", "main")
    recorder.want({"c1": ONE})
    await eventually(lambda: recorder.told)
    runtime.failure = CriRefusedError("UNKNOWN: half done")
    runtime.answers.clear()
    recorder.want({"c1": TWO})
    recorder.pause()
    runtime.answers.set()
    await asyncio.sleep(0.02)
    assert recorder.problems == {}
    runtime.failure = None
    recorder.want({"c1": ONE})
    await asyncio.sleep(0.02)
    assert runtime.told == [("c1", ONE)]
