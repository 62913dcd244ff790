"""The plug-in on a socket: it registers, answers, and survives whatever the runtime does."""

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.runtime.generated import nri_v1alpha1_pb2 as pb
from numapin_enforcer.runtime.nri.connection import MOST_CALLS
from numapin_enforcer.runtime.nri.frames import PLUGIN, RUNTIME, Frame, Kind, encode
from numapin_enforcer.runtime.nri.plugin import NriPlugin
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets
from support.fakes.nri_runtime import FakeNri, new_container
from support.real.waiting import eventually


@dataclass
class Answers:
    """Gives each container CPU 1, and keeps those named `slow` waiting."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    started: list[str] = field(default_factory=list)
    about: RuntimeTimeouts | None = None

    def registered(self, about: RuntimeTimeouts) -> None:
        self.about = about

    async def create(self, container: NriContainer) -> Sets | None:
        if container.name == "slow":
            await self.go.wait()
        if container.name == "broken":
            raise RuntimeError("a defect")
        return Sets(CpuSet.parse("1")) if container.name != "none" else None

    async def start(self, container: NriContainer) -> None:
        self.started.append(container.name)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[FakeNri]:
    async with FakeNri(tmp_path / "nri.sock") as made:
        yield made


@pytest.fixture
def problems() -> list[str]:
    """Each problem of the plug-in, of which some last as long as a back-off alone."""
    return []


@pytest.fixture
async def plugin(tmp_path: Path, answers: Answers, problems: list[str]) -> AsyncIterator[NriPlugin]:
    made = NriPlugin(tmp_path / "nri.sock", answers, lambda: problems.append(made.problem))
    made.want(is_wanted=True)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()


async def test_it_registers_and_answers(
    runtime: FakeNri, plugin: NriPlugin, answers: Answers
) -> None:
    await runtime.until_ready()
    assert runtime.registered == [("numapin", "99")]
    assert runtime.subscribed == 0b101000
    await eventually(lambda: plugin.about)
    assert answers.about == plugin.about == RuntimeTimeouts("fake", "v1", 2.0)
    assert plugin.problem == ""
    assert await runtime.create(new_container("main")) == ("1", "")
    assert await runtime.create(new_container("none")) == ("", "")


async def test_a_start_is_known_in_both_forms(
    runtime: FakeNri, plugin: NriPlugin, answers: Answers
) -> None:
    await runtime.until_ready()
    one, other = new_container("one"), new_container("other")
    await runtime.ask("StartContainer", one)
    event = pb.StateChangeEvent(event=pb.START_CONTAINER, pod=other.pod, container=other.container)
    await runtime.ask("StateChange", event)
    await runtime.ask("StateChange", pb.StateChangeEvent(event=pb.UNKNOWN, pod=other.pod))
    assert answers.started == ["one", "other"]


async def test_a_container_that_waits_delays_no_other(
    runtime: FakeNri, plugin: NriPlugin, answers: Answers
) -> None:
    await runtime.until_ready()
    slow = asyncio.create_task(runtime.create(new_container("slow")))
    assert await runtime.create(new_container("main")) == ("1", "")
    assert not slow.done()
    answers.go.set()
    assert await slow == ("1", "")


async def test_a_defect_leaves_the_container_as_it_is(
    runtime: FakeNri, plugin: NriPlugin, caplog: pytest.LogCaptureFixture
) -> None:
    await runtime.until_ready()
    assert await runtime.create(new_container("broken")) == ("", "")
    assert "failed unexpectedly" in caplog.text
    assert await runtime.create(new_container("main")) == ("1", "")


async def test_other_calls_are_not_implemented(runtime: FakeNri, plugin: NriPlugin) -> None:
    await runtime.until_ready()
    answer = await runtime.ask("UpdateContainer", new_container())
    assert (answer.status.code, answer.status.message) == (
        12,
        "there is no call 'UpdateContainer' here",
    )
    answer = await runtime.ask("Configure", new_container(), service="x" * 1000)
    assert answer.status.code == 12
    assert len(answer.status.message) < 200
    assert not (await runtime.ask("Shutdown", pb.SynchronizeRequest())).status.code


async def test_it_registers_again_when_it_was_dropped(
    runtime: FakeNri, plugin: NriPlugin, problems: list[str]
) -> None:
    await runtime.until_ready()
    await eventually(lambda: plugin.about)
    runtime.drop()
    await eventually(lambda: any("closed the connection" in one for one in problems))
    await runtime.until_ready()
    await eventually(lambda: not plugin.problem)
    assert (plugin.lost, len(runtime.registered)) == (1, 2)
    assert await runtime.create(new_container("main")) == ("1", "")


async def test_a_call_in_flight_ends_with_its_connection(
    runtime: FakeNri, plugin: NriPlugin, answers: Answers
) -> None:
    await runtime.until_ready()
    slow = asyncio.create_task(runtime.ask("CreateContainer", new_container("slow")))
    await asyncio.sleep(0.05)
    runtime.drop()
    await runtime.until_ready()
    answers.go.set()
    assert await runtime.create(new_container("main")) == ("1", "")
    slow.cancel()


async def test_a_missing_socket_is_no_noise(
    plugin: NriPlugin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await eventually(lambda: "no NRI socket" in plugin.problem)
    assert str(tmp_path / "nri.sock") in plugin.problem
    assert caplog.text == ""


async def test_a_socket_that_nothing_serves_is_told_once(
    tmp_path: Path, plugin: NriPlugin, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeNri(tmp_path / "nri.sock") as runtime:
        plugin.want(is_wanted=False)
        plugin.want(is_wanted=True)
        await runtime.until_ready()
    await eventually(lambda: "nri.sock" in plugin.problem)
    await asyncio.sleep(0.5)
    assert caplog.text.count("does not call the NRI plug-in") <= 2


async def test_a_refusal_is_told(tmp_path: Path, plugin: NriPlugin) -> None:
    async with FakeNri(tmp_path / "nri.sock", refuses="no plug-ins today"):
        plugin.want(is_wanted=False)
        plugin.want(is_wanted=True)
        await eventually(lambda: "no plug-ins today" in plugin.problem)


async def test_it_leaves_when_it_is_not_wanted_any_more(
    runtime: FakeNri, plugin: NriPlugin, caplog: pytest.LogCaptureFixture
) -> None:
    await runtime.until_ready()
    await eventually(lambda: plugin.about)
    plugin.want(is_wanted=False)
    await eventually(lambda: plugin.about is None)
    assert plugin.problem == ""
    await asyncio.sleep(0.3)
    assert len(runtime.registered) == 1
    assert caplog.text == ""


HOSTILE = {
    "another connection": struct.pack(">II", 7, 4) + b"abcd",
    "a long frame": struct.pack(">II", PLUGIN, 2**31),
    "a stream's data": encode(Frame(PLUGIN, 3, Kind.REQUEST, b"")).replace(b"\x01\0", b"\x03\0"),
    "an answer to nothing": encode(Frame(PLUGIN, 3, Kind.RESPONSE, b"")),
    "no request": encode(Frame(PLUGIN, 3, Kind.REQUEST, b"\x0a\x7f")),
    "a refusal afterwards": encode(Frame(RUNTIME, 9, Kind.RESPONSE, b"\x0a\x02\x08\x02")),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
async def test_what_may_not_come_ends_the_connection(
    runtime: FakeNri, plugin: NriPlugin, data: bytes
) -> None:
    await runtime.until_ready()
    runtime.send_bytes(data)
    await eventually(lambda: len(runtime.registered) == 2)
    await runtime.until_ready()
    assert await runtime.create(new_container("main")) == ("1", "")


async def test_a_container_that_cannot_be_read_ends_the_connection(
    runtime: FakeNri, plugin: NriPlugin
) -> None:
    await runtime.until_ready()
    request = pb.TtrpcRequest(
        service="nri.pkg.api.v1alpha1.Plugin", method="CreateContainer", payload=b"\x0a\x7f"
    )
    runtime.send(Frame(PLUGIN, 99, Kind.REQUEST, request.SerializeToString()))
    await eventually(lambda: len(runtime.registered) == 2)


async def test_a_flood_of_calls_ends_the_connection(
    runtime: FakeNri, plugin: NriPlugin, answers: Answers
) -> None:
    await runtime.until_ready()
    calls = [
        asyncio.create_task(runtime.ask("CreateContainer", new_container("slow")))
        for _ in range(MOST_CALLS + 1)
    ]
    await eventually(lambda: len(runtime.registered) == 2)
    for call in calls:
        call.cancel()
