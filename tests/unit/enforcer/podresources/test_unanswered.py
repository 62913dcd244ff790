"""What is said of devices while the kubelet or the runtime does not answer."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from numapin_api.schema.plain import DevicesStatus
from numapin_enforcer.runtime.interface import CriUnavailableError
from support.fakes.kubelets.asked import GPUS, PLACES, World, resources


async def test_a_kubelet_that_fails_is_said_and_what_pods_have_is_kept(gpus: World) -> None:
    gpus.name("u1", "a")
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(20)
    gpus.kubelet.failure = "no answer in 2 s"
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert "no answer in 2 s" in str(gpus.message)
    assert gpus.rows == {"u1": ("g0",)}
    gpus.wake.clear()
    gpus.pop_asked()
    await gpus.clock.advance(60)
    assert not gpus.wake.is_set()
    assert 6 <= len(gpus.pop_asked()) < 60
    gpus.kubelet.failure = ""
    await gpus.clock.advance(10)
    assert gpus.message is None
    assert gpus.wake.is_set()


async def test_one_refusal_is_not_worth_a_report(gpus: World) -> None:
    for _ in range(10):
        await gpus.kubelet.asked_by("another client")
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert gpus.message is None
    assert not gpus.wake.is_set()


async def test_a_kubelet_without_a_socket_is_not_asked_until_it_has_one(world: World) -> None:
    world.socket.unlink()
    await world.make_pass()
    assert world.status() is None
    assert not world.asker.is_answering
    world.socket.touch()
    await world.make_pass(resynced=True)
    assert world.status() == DevicesStatus()


async def test_a_socket_that_is_gone_is_an_answer_that_is_missing(gpus: World) -> None:
    gpus.socket.unlink()
    gpus.kubelet.failure = "No such file or directory"
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert "No such file or directory" in str(gpus.message)
    assert len(resources(gpus)) == 2


async def test_a_kubelet_that_never_answered_is_reported_with_the_reason(world: World) -> None:
    world.kubelet.failure = "Permission denied"
    await world.make_pass()
    await world.clock.advance(1)
    assert "Permission denied" in str(world.message)
    assert not world.asker.is_answering


async def test_the_first_report_waits_for_the_first_answer(world: World) -> None:
    world.kubelet.may_answer.clear()
    await world.make_pass()
    assert world.holds_report()
    world.kubelet.may_answer.set()
    await world.clock.run_tasks()
    assert not world.holds_report()
    assert world.wake.is_set()


async def test_after_a_restart_what_was_reported_holds_until_the_kubelet_answers(
    gpus: World, start: Callable[[Awaitable[None]], None]
) -> None:
    gpus.name("u1", "a")
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(1)
    before = gpus.status()
    assert before is not None
    gpus.kubelet.failure = "no answer in 2 s"
    gpus.asker = gpus.another()
    start(gpus.asker.run())
    gpus.asker.observe(gpus.pods, PLACES, resynced=True)
    gpus.asker.resume(before.to_wire())
    await gpus.clock.advance(1)
    assert gpus.rows == {"u1": ("g0",)}
    assert "no answer" in str(gpus.message)
    gpus.kubelet.failure = ""
    await gpus.clock.advance(10)
    assert gpus.status() == before


async def test_a_runtime_that_does_not_name_pods_is_said(gpus: World) -> None:
    gpus.runtime.failure = CriUnavailableError(Path("/run/cri.sock"), "no answer in 5 s")
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(2)
    assert "container runtime does not answer" in str(gpus.message)
    gpus.runtime.failure = None
    gpus.name("u1", "a")
    await gpus.clock.advance(10)
    assert gpus.rows == {"u1": ("g0",)}
    assert gpus.message is None
