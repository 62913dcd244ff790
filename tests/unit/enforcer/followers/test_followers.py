"""What follows each pass, over models of kernel, runtime and systemd."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    CriUnavailableError,
    RuntimeVersion,
)
from numapin_enforcer.status.obstacles import PASSES_TO_STALL
from numapin_enforcer.systemd.interface import (
    SliceSets,
    SystemdAbsentError,
    SystemdUnavailableError,
)
from support.fakes.runtime import FakeRuntime
from support.fakes.worlds.followed_node import (
    ALL,
    BURSTABLE,
    CONTAINER,
    CPU_2,
    CPU_3,
    ID,
    MEMS,
    MOVE,
    POD,
    Node,
    spec_of,
)


async def test_the_runtime_is_asked_for_the_names_of_assigned_pods(node: Node) -> None:
    complete: list[bool] = []
    for _ in range(2):
        await node.make_pass(CPU_3)
        complete.append(not node.followers.containers.unnamed)
    assert complete == [False, True]
    assert node.followers.containers.names.known == {ID: "c"}


async def test_the_runtime_is_sent_exclusive_cpus_after_the_kernel(node: Node) -> None:
    await node.make_pass(CPU_3)
    assert node.sent == []
    await node.make_pass(CPU_3)
    assert node.runtime.updates == [(ID, ContainerResources(CpuSet((3,))))]


async def test_names_of_deleted_containers_are_dropped_by_a_full_resync(node: Node) -> None:
    await node.enforce(CPU_3)
    node.model.vanish(CONTAINER)
    await node.make_pass(CPU_3)
    assert node.followers.containers.names.known == {ID: "c"}
    await node.make_pass(CPU_3, full=True)
    assert node.followers.containers.names.known == {}


async def test_cpus_that_the_runtime_may_still_write_are_reported(node: Node) -> None:
    await node.enforce(CPU_3)
    node.runtime.may_update.clear()
    await node.make_pass(CPU_2)
    assert node.stale_cpus[CONTAINER] == CpuSet((3,))
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    await node.make_pass(CPU_2)
    assert CONTAINER not in node.stale_cpus
    assert node.sent == ["3", "2"]


async def test_an_external_change_makes_the_runtime_be_updated_again(node: Node) -> None:
    await node.enforce(CPU_3)
    node.model.groups[CONTAINER].cpus = ALL
    node.model.written.append(CONTAINER)
    done = await node.make_pass(CPU_3)
    assert [one.path for one in done.drifts] == [CONTAINER]
    assert node.posted.drifts == list(done.drifts)
    assert node.sent == ["3", "3"]


async def test_systemd_is_sent_the_cpus_of_qos_slices(node: Node) -> None:
    await node.enforce(CPU_3)
    assert node.systemd.known == {BURSTABLE: SliceSets(CpuSet(range(3)))}


async def test_systemd_is_reset_when_slices_are_cleared(node: Node) -> None:
    await node.enforce(CPU_3)
    await node.make_pass(None)
    assert node.systemd.known == {BURSTABLE: SliceSets()}


async def test_the_runtime_is_sent_all_cpus_after_a_release(node: Node) -> None:
    await node.enforce(CPU_3)
    await node.make_pass(None)
    assert node.sent == ["3", "0-3"]


async def test_a_release_awaits_who_may_still_write_a_set_of_before(node: Node) -> None:
    await node.enforce(CPU_3)
    awaits = node.followers.awaits_others
    assert not awaits(node.last), "not a release"
    for gate in (node.systemd.gate, node.runtime.may_update):
        await node.make_pass(CPU_3)
        gate.clear()
        await node.make_pass(None)
        assert awaits(node.last)
        gate.set()
        await node.clock.run_tasks()
        await node.make_pass(None)
        assert not awaits(node.last)


async def test_a_release_is_not_reported_before_the_runtime_has_it(node: Node) -> None:
    await node.enforce(CPU_3)
    node.runtime.may_update.clear()
    await node.make_pass(CPU_3)
    assert node.followers.runtime.state().working == ()
    await node.make_pass(None)
    assert "is being sent the CPUs of 1 container" in str(node.followers.runtime.state().working)
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    await node.make_pass(None)
    assert node.followers.runtime.state().working == ()


async def test_a_release_does_not_await_a_systemd_that_is_absent(node: Node) -> None:
    await node.enforce(CPU_3)
    node.systemd.failure = SystemdAbsentError("no socket")
    await node.make_pass(None)
    assert not node.followers.awaits_others(node.last)
    node.systemd.failure = SystemdUnavailableError("no answer")
    await node.make_pass(CPU_3)
    await node.make_pass(None)
    assert node.followers.awaits_others(node.last)


async def test_the_report_is_delayed_while_systemd_answers(node: Node) -> None:
    node.systemd.gate.clear()
    await node.enforce(CPU_3)
    assert node.finishes_soon()
    node.systemd.gate.set()
    await node.clock.run_tasks()
    assert not node.finishes_soon()


async def test_the_report_waits_a_second_for_the_names_of_containers(node: Node) -> None:
    """Until it has a name, an exclusive container shares CPUs, and the kernel shows no lack."""
    node.runtime.may_list.clear()
    await node.make_pass(CPU_3)
    assert node.finishes_soon()
    rechecks = node.followers.recheck_seconds()
    assert node.reasons == ([], [])
    node.clock.stand_still(1)
    assert not node.finishes_soon()
    assert (rechecks, node.followers.recheck_seconds()) == ([1.0], [])
    (obstacle,) = node.working
    assert obstacle.reason == Reason.APPLYING
    assert "slow to name 1 container, which share CPUs until it does" in obstacle.message
    node.runtime.may_list.set()
    await node.clock.run_tasks()
    await node.make_pass(CPU_3)
    assert node.reasons == ([], [])
    assert not node.finishes_soon()


async def test_the_report_does_not_wait_for_a_container_that_is_not_listed(node: Node) -> None:
    node.runtime.known.clear()
    await node.make_pass(CPU_3)
    assert not node.finishes_soon()


async def test_nothing_is_sent_after_a_pause(node: Node) -> None:
    node.runtime.failure = CriUnavailableError(Path("/run/x.sock"), "no answer")
    node.followers.containers.names.known = {ID: "c"}
    await node.make_pass(CPU_3)
    node.rest(left_alone=True)
    node.runtime.failure = None
    await node.clock.advance(60)
    assert node.sent == []


async def test_a_runtime_that_does_not_answer_is_reported(node: Node) -> None:
    node.runtime.failure = CriUnavailableError(Path("/run/x.sock"), "no answer")
    await node.make_pass(CPU_3)
    assert node.reasons[0] == [Reason.RUNTIME_UNAVAILABLE]


async def test_cpus_of_the_previous_process_count_until_the_runtime_is_updated(
    tmp_path: Path,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    node = Node(tmp_path, runtime, wake, CPU_3)
    node.start(start)
    await node.make_pass(CPU_2)
    assert node.stale_cpus[POD] == CpuSet((3,))
    assert Reason.APPLYING in node.reasons[1]
    await node.make_pass(CPU_2)
    await node.make_pass(CPU_2)
    assert node.sent == ["2"]
    stale = node.stale_cpus
    assert not {POD, CONTAINER} & stale.keys()


async def test_the_previous_update_is_not_repeated_before_the_kernel_has_the_cpus(
    tmp_path: Path,
    runtime: FakeRuntime,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> None:
    node = Node(tmp_path, runtime, wake, CPU_3)
    node.start(start)
    node.followers.containers.names.known = {ID: "c"}

    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")

    node.model.before_write = refuse
    done = await node.make_pass(CPU_2)
    assert done.failures
    assert node.sent == []


async def test_a_refused_move_of_memory_stalls_after_some_passes(node: Node) -> None:
    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EBUSY, "busy")

    await node.make_pass(CPU_3)
    node.model.before_write = refuse
    node.move(MOVE)
    await node.clock.until(lambda: node.followers.memory.mover.failures)
    assert node.reasons == ([], [Reason.CGROUP_WRITE_FAILED])
    node.move(MOVE, failed_passes=PASSES_TO_STALL)
    assert node.reasons == ([Reason.CGROUP_WRITE_FAILED], [])


async def test_what_a_container_had_is_known_until_the_runtime_cannot_bind_it_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that is under way may bind it after the kernel was told otherwise."""
    forgotten: list[frozenset[str]] = []
    monkeypatch.setattr(node.followers.memory.mover, "forget", forgotten.append)
    bound = spec_of("3", mems="0")
    await node.enforce(bound)
    await node.clock.until(lambda: str(node.model.read_one(CONTAINER).mems) == "0")
    await node.make_pass(bound)
    assert node.runtime.updates[-1] == (ID, ContainerResources(CpuSet((3,)), MemSet((0,))))
    node.runtime.failure = CriUnavailableError(Path("/run/x.sock"), "no answer")
    await node.make_pass(CPU_3)
    await node.clock.until(lambda: node.model.read_one(CONTAINER).effective_mems == MEMS)
    await node.make_pass(CPU_3)
    assert not forgotten[-1]
    node.runtime.failure = None
    await node.clock.advance(60)
    await node.make_pass(CPU_3)
    assert forgotten[-1] == {CONTAINER}


async def test_no_memory_is_moved_after_a_stop(node: Node) -> None:
    written: list[Write] = []
    await node.make_pass(CPU_3)
    node.model.after_write = written.append
    node.move(MOVE)
    node.rest(left_alone=True)
    await node.clock.advance(60)
    assert written == []


async def test_the_runtimes_version_is_reported(
    node: Node, start: Callable[[Awaitable[None]], None]
) -> None:
    assert node.facts().content.runtime is None
    start(node.followers.containers.names.probe(10))
    await node.clock.run_tasks()
    runtime = node.facts().content.runtime
    assert runtime is not None
    assert (runtime.name, runtime.version) == ("fake", "v1")


async def test_a_long_version_of_the_runtime_is_cut(
    node: Node, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def version() -> RuntimeVersion:
        return RuntimeVersion("\u2603" * 200, "v2-" + "x" * 200)

    monkeypatch.setattr(runtime, "version", version)
    probe = asyncio.ensure_future(node.followers.containers.names.probe(10))
    await node.clock.run_tasks()
    found = node.facts().content.runtime
    assert found is not None
    assert (len(found.name), found.version[:4], len(found.version)) == (128, "v2-x", 128)
    probe.cancel()
