"""The loop on a manual clock, over a model of the kernel."""

import asyncio
import errno
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.agent import RETRY_SECONDS, SEARCH_SECONDS
from numapin_enforcer.assignment.acceptance import ACCEPTED
from numapin_enforcer.cgroups.errors import CgroupError, CgroupReadOnlyError
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.passes import watched_pods
from numapin_enforcer.runtime.interface import CriUnavailableError
from numapin_enforcer.schedule import CPU_SHARE
from numapin_enforcer.status.in_force.population import RECHECK_SECONDS
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.telemetry.samples.foreign_tasks import SAMPLES_TO_FORGET, SAMPLES_TO_NAME
from support.fakes.kernels.new_pods import NewPods
from support.fakes.worlds.agent_world import BODY, CONTAINER, POD, World


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = os.eventfd(0)
    yield made
    os.close(made)


@pytest.fixture
async def world(descriptor: int, tmp_path: Path) -> AsyncIterator[World]:
    with NewPods() as new_pods:
        made = World(descriptor, tmp_path, new_pods)
        works = (
            made.agent.run(),
            made.inputs.local_copy.run(),
            made.followers.runtime.updater.run(),
        )
        tasks = [asyncio.create_task(work) for work in works]
        await made.clock.run_tasks()
        await made.saved("Static")
        await made.clock.run_tasks()
        del made.passes[:-1]
        yield made
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_accepted_assignment_is_enforced_and_saved(world: World) -> None:
    assert world.cpus == "3"
    assert await world.saved("Static")


async def test_an_accepted_assignment_is_logged_with_its_generation(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assignments.body = {**BODY, "metadata": {**BODY["metadata"], "generation": 2}}
    with caplog.at_level(logging.INFO):
        world.wake.set()
        await world.clock.run_tasks()
    logged = [(one.msg, vars(one).get("generation")) for one in caplog.records]
    assert (ACCEPTED, 2) in logged


async def test_a_pass_comes_with_each_event_and_each_resync(world: World) -> None:
    world.wake.set()
    await world.clock.run_tasks()
    assert len(world.passes) == 2
    await world.clock.advance(9.9)
    assert len(world.passes) == 2
    await world.clock.advance(0.2)
    assert len(world.passes) == 3


async def test_a_pass_comes_when_the_report_must_be_checked_again(world: World) -> None:
    world.model.leave(CONTAINER)
    await world.clock.advance(10)
    passes = len(world.passes)
    await world.clock.advance(RECHECK_SECONDS)
    assert len(world.passes) == passes + 1


async def test_threads_that_leave_their_cgroup_are_set_again_and_then_named(world: World) -> None:
    other = f"kubepods/podother/{'b' * 64}"
    for path in ("kubepods/podother", other):
        world.model.make(path)
    world.wake.set()
    await world.clock.run_tasks()
    wide = world.threads.start(other, "0-3", "iou-wrk-7")
    await world.clock.advance(10)
    assert (str(world.threads.running[wide].cpus), world.last.wide) == ("0-2", ())
    world.threads.start(other, "0-3", "iou-wrk-7")
    await world.clock.advance(10)
    assert [(one.path, str(one.cpus)) for one in world.last.wide] == [(other, "3")]
    assert not any(one.result.failures for one in world.passes)


async def test_foreign_tasks_are_looked_for_at_each_resync_without_a_scrape(world: World) -> None:
    found = []
    for _ in range(SAMPLES_TO_NAME):
        found.append(world.last.foreign)
        world.times.cpus[3] += 9.0
        await world.clock.advance(10)
    assert found == [()] * SAMPLES_TO_NAME
    world.times.used[CONTAINER], found = 0.0, []
    for _ in range(SAMPLES_TO_FORGET):
        found.append(world.last.foreign)
        world.times.cpus[3] += 9.0
        world.times.used[CONTAINER] += 9.0
        await world.clock.advance(10)
    assert found == [("d/p/c",)] * SAMPLES_TO_FORGET
    assert world.last.foreign == ()


async def test_no_set_is_written_again_while_memory_moves(world: World) -> None:
    """Such a write may wait for seconds; the threads are named instead."""
    other = f"kubepods/podother/{'b' * 64}"
    for path in ("kubepods/podother", other):
        world.model.make(path)
    world.wake.set()
    await world.clock.run_tasks()
    wide = world.threads.start(other, "0-3")
    with world.followers.memory.mover.gate.moving():
        await world.clock.advance(10)
    assert str(world.threads.running[wide].cpus) == "0-3"
    assert [one.path for one in world.last.wide] == [other]


async def test_missing_cgroups_are_searched_for(world: World) -> None:
    world.kubepods.is_there = False
    world.model.vanish("kubepods")
    world.wake.set()
    await world.clock.run_tasks()
    assert world.kubepods.tree is None
    passes = len(world.passes)
    await world.clock.advance(SEARCH_SECONDS)
    assert len(world.passes) == passes + 1


async def test_another_tree_of_the_kubelet_is_opened_at_the_next_resync(world: World) -> None:
    """Its cgroup driver was changed: the old tree is left, and stays empty."""
    world.kubepods.has_moved, opened = True, world.kubepods.opened
    world.wake.set()
    await world.clock.run_tasks()
    assert (reasons(world), world.kubepods.opened) == ([], opened)
    await world.clock.advance(10)
    assert (reasons(world), world.kubepods.opened) == (["CgroupDriverChanged"], opened + 1)
    assert world.cpus == "3"


async def test_a_runtime_that_only_a_restart_reaches_again_ends_the_program(world: World) -> None:
    """The liveness probe fails, and the kubelet restarts the container with the new folder."""
    world.names.problem = CriUnavailableError(Path("/run/x.sock"), "gone", is_outdated=True)
    await world.clock.advance(10)
    assert "only a restart of this program" in world.reporter.health.outdated
    world.names.problem = None
    await world.clock.advance(10)
    assert world.reporter.health.outdated == ""


async def test_an_assignment_of_mode_none_is_released_once(world: World) -> None:
    released = {**BODY, "metadata": {**BODY["metadata"], "generation": 2}, "spec": {"mode": "None"}}
    world.assignments.body = released
    for _ in range(3):
        world.wake.set()
        await world.clock.run_tasks()
    assert world.cpus == "0-3"
    assert await world.saved("None")
    assert (world.last.rests, world.last.left_alone) == (True, False)
    world.model.write(Write(CONTAINER, CpuSet([1]), Step.PREPARE))
    await world.clock.advance(20)
    assert world.cpus == "1", "what others set later is theirs"


async def test_a_release_goes_on_until_the_runtime_writes_no_set_of_before(world: World) -> None:
    """The kubelet has the runtime update a container, which repeats what it was sent last."""
    await world.clock.until(lambda: bool(world.runtime.updates))
    world.runtime.may_update.clear()
    none = {"metadata": {**BODY["metadata"], "generation": 2}, "spec": {"mode": "None"}}
    world.assignments.body = {**BODY, **none}
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "0-3"
    assert await world.saved("None"), "an enforcer that is installed later enforces nothing"
    world.model.write(Write(CONTAINER, CpuSet([3]), Step.PREPARE))
    world.runtime.may_update.set()
    await world.clock.advance(10 * RETRY_SECONDS)
    assert world.cpus == "0-3"
    await world.clock.advance(10)
    assert world.last.rests


async def test_a_release_goes_on_until_numa_nodes_are_given_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel makes that write late while it moves memory, when all CPUs are given back."""
    make = world.model.write

    def refuse(write: Write) -> None:
        if isinstance(write.value, MemSet):
            raise CgroupError(write.path, str(write.value), errno.ETIMEDOUT, "later")
        make(write)

    make(Write(CONTAINER, MemSet([0]), Step.MOVE_MEMORY))
    world.saved_mems.add(CONTAINER, MemSet([0, 1]))
    monkeypatch.setattr(world.model, "write", refuse)
    released = {**BODY, "metadata": {**BODY["metadata"], "generation": 2}, "spec": {"mode": "None"}}
    world.assignments.body = released
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "0-3"
    await world.clock.advance(RETRY_SECONDS)
    assert world.last.result.failures
    assert not any(one.released for one in world.passes)
    monkeypatch.setattr(world.model, "write", make)
    await world.clock.advance(2 * RETRY_SECONDS)
    assert str(world.model.read().cgroups[CONTAINER].effective_mems) == "0-1"
    assert not world.last.result.failures
    assert [one.released for one in world.passes].count(True) == 1


STATIC = '{"policyName": "static", "defaultCpuSet": "0-3", "entries": {"a": {"c": "%s"}}}'


async def test_a_static_kubelet_is_left_alone(world: World) -> None:
    state = world.folder / "cpu_manager_state"
    state.write_text(STATIC % 1)
    world.model.write(Write(CONTAINER, CpuSet([0, 3]), Step.PREPARE))
    updates = len(world.runtime.updates)
    await world.clock.advance(10)
    assert world.last.conflict
    assert (world.cpus, len(world.runtime.updates)) == ("0,3", updates)
    assert world.last.left_alone
    assert [str(one.cpus) for one in world.last.pinned] == ["1"]


async def test_a_kubelet_that_pins_again_gets_pods_back_and_keeps_its_containers(
    world: World,
) -> None:
    """Their parents have all CPUs again, so that the kubelet can set them."""
    world.model.make("kubepods/burstable")
    world.wake.set()
    await world.clock.run_tasks()
    sets = {path: str(one.cpus) for path, one in world.model.read().cgroups.items()}
    assert (sets["kubepods/burstable"], sets[CONTAINER]) == ("0-2", "3")
    (world.folder / "cpu_manager_state").write_text(STATIC % 3)
    updates = len(world.runtime.updates)
    await world.clock.advance(10)
    assert str(world.model.read().cgroups["kubepods/burstable"].cpus) == "0-2", "still assigned"
    none = {"metadata": {**BODY["metadata"], "generation": 2}, "spec": {"mode": "None"}}
    world.assignments.body = {**BODY, **none}
    for _ in range(2):
        world.wake.set()
        await world.clock.run_tasks()
    sets = {path: str(one.effective_cpus) for path, one in world.model.read().cgroups.items()}
    assert (sets["kubepods/burstable"], sets[POD], sets[CONTAINER]) == ("0-3", "0-3", "3")
    assert [one.released for one in world.passes].count(True) == 1
    assert not world.last.left_alone
    assert len(world.runtime.updates) == updates, "the runtime is sent nothing"
    assert world.last.conflict


async def test_what_a_static_kubelet_pins_is_reported_until_it_pins_no_more(world: World) -> None:
    state = world.folder / "cpu_manager_state"
    state.write_text(STATIC % 1)
    await world.clock.advance(10)
    for text, pinned in ((STATIC % 2, ["2"]), ('{"policyName": "none"}', [])):
        state.write_text(text)
        world.wake.set()  # as by a new pod: the next resync is later
        await world.clock.run_tasks()
        assert [str(one.cpus) for one in world.last.pinned] == pinned
    assert world.last.conflict == ""


async def test_while_the_loop_rests_no_event_is_read_and_none_wakes_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop must not spin while the descriptor is readable.

    Each pass takes 10 s of CPU time; so do each read of events, and the fence of new cgroups.
    """
    spent = itertools.count(0.0, 10.0)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    world.events.begin()
    await world.clock.run_tasks()
    passes, reads = len(world.passes), world.events.reads
    await world.clock.run_tasks()
    assert (passes, reads) == (2, 1)
    assert (len(world.passes), world.events.reads) == (2, 1)
    assert not world.wake.is_set()
    await world.clock.advance(20 / CPU_SHARE)
    assert (len(world.passes), world.events.reads) == (2, 1)
    await world.clock.advance(10 / CPU_SHARE)
    assert (len(world.passes), world.events.reads) == (3, 2)


async def test_new_pods_are_fenced_while_the_loop_rests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it must rest, and whatever is not read meanwhile."""
    spent = itertools.count(0.0, 10.0)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    world.events.begin()
    await world.clock.run_tasks()
    passes, reads = len(world.passes), world.events.reads
    world.model.make("kubepods/podnew")
    world.new_pods.report("kubepods/podnew")
    await world.clock.run_tasks()
    assert str(world.model.read().cgroups["kubepods/podnew"].effective_cpus) == "0-2"
    assert (len(world.passes), world.events.reads) == (passes, reads)


async def test_new_pods_are_fenced_while_a_pass_reads(world: World) -> None:
    """A full read of many cgroups may take a tenth of a second."""
    seen: list[str] = []

    def in_the_pass() -> None:
        if not seen:
            seen.append("")
            world.model.make("kubepods/podnew")
            world.new_pods.report("kubepods/podnew")
            fence()
            seen.append(str(world.model.groups["kubepods/podnew"].cpus))

    fence, world.model.between_reads = world.model.between_reads, in_the_pass
    await world.clock.advance(61)
    assert seen == ["", "0-2"]


async def test_events_that_do_not_matter_make_no_pass(world: World) -> None:
    world.events.matter = False
    world.events.begin()
    await world.clock.run_tasks()
    assert world.events.reads > 0
    assert len(world.passes) == 1


@pytest.mark.parametrize("error", [RecursionError("deep"), OSError(36, "long"), KeyError("x")])
async def test_an_unexpected_error_is_reported_and_the_next_pass_starts_from_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(world.enforcing, "enforce", fail)
        world.wake.set()
        await world.clock.run_tasks()
        assert world.missing["enforcement"].startswith("InternalError: ")
        assert world.kubepods.tree is None
    world.model.write(Write(CONTAINER, CpuSet(range(4)), Step.PREPARE))
    await world.clock.advance(RETRY_SECONDS)
    assert ("InternalError" in str(world.missing), world.cpus) == (False, "3")


def reasons(world: World) -> list[str]:
    """The Events that were posted."""
    return [one.reason for one in world.posted.events]


def _fails(*_: object, **__: object) -> None:
    raise RuntimeError("a defect that one cgroup triggers each time")


def _cannot_be_read(*_: object, **__: object) -> None:
    raise CgroupError("cgroup.procs", None, errno.EIO, "input/output error (EIO)")


def _cannot_be_written(write: Write) -> None:
    raise CgroupReadOnlyError(write.path, str(write.value), errno.EROFS, "read-only")


@pytest.mark.parametrize(
    ("target", "name", "broken"),
    [
        ("agent", "_observe_node", _fails),
        ("enforcing", "enforce", _fails),
        ("reporter", "report", _fails),
        ("kubepods", "open", _cannot_be_read),
        ("model", "read", _cannot_be_read),
        ("model", "write", _cannot_be_written),
    ],
)
async def test_passes_that_do_nothing_count_until_one_does_its_work(
    world: World, monkeypatch: pytest.MonkeyPatch, target: str, name: str, broken: object
) -> None:
    """A standby fences meanwhile: see `keep_alive`."""
    assert world.agent.progress.problem == ""
    part = getattr(world, target)
    with monkeypatch.context() as patched:
        world.model.make("kubepods/podnew")
        world.kubepods.close()
        patched.setattr(part, name, broken)
        await world.clock.advance(20)
        assert "could do nothing" in world.agent.progress.problem
        assert world.reporter.health.remark == world.agent.progress.problem
    await world.clock.advance(20)
    assert (world.agent.progress.problem, world.reporter.health.remark) == ("", "")
    assert str(world.model.read().cgroups["kubepods/podnew"].effective_cpus) == "0-2"


async def test_no_pass_is_late_while_the_loop_waits_or_rests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = itertools.count(0.0, 10.0)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    for _ in range(60):
        await world.clock.advance(1)
        assert world.agent.progress.problem == ""


async def test_a_runtime_or_api_server_that_is_away_is_no_reason(world: World) -> None:
    world.names.known = {}
    world.assignments.body = None
    await world.clock.advance(60)
    assert world.agent.progress.problem == ""


async def test_a_new_pod_is_kept_off_exclusive_cpus_before_the_loop_plans_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.wake.set()
    await world.clock.run_tasks()
    passes = len(world.passes)
    monkeypatch.setattr(world.agent, "_supervised_pass", lambda: None)
    world.model.make("kubepods/podnew")
    world.events.collected = Changes(("kubepods/podnew",))
    world.events.begin()
    await world.clock.run_tasks()
    assert len(world.passes) == passes
    assert str(world.model.read().cgroups["kubepods/podnew"].effective_cpus) == "0-2"


async def test_a_pass_waits_a_little_for_the_runtime_of_a_fenced_pod(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for long: what comes meanwhile does not put it off again."""
    settle_seconds = 1.0  # far more than the steps before its end take on a busy machine
    monkeypatch.setattr(watched_pods, "SETTLE_SECONDS", settle_seconds)
    world.wake.set()
    await world.clock.run_tasks()
    passes, new = len(world.passes), "kubepods/podnew"
    world.model.make(new)
    world.events.collected = Changes((new,))
    world.events.begin()
    began_seconds = time.monotonic()
    await world.clock.run_tasks()
    assert len(world.passes) == passes
    world.model.write(Write(new, CpuSet(range(4)), Step.PREPARE))
    world.events.collected = Changes((new,), written=(new,))
    await world.wake.wait()
    assert time.monotonic() - began_seconds >= settle_seconds
    assert str(world.model.read().cgroups[new].effective_cpus) == "0-2"
    world.events.collected = Changes()
    await world.clock.run_tasks()
    assert len(world.passes) > passes


async def test_everything_is_released_once_the_assignment_is_gone(world: World) -> None:
    world.assignments.body = None
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "3"
    world.assignments.gone = True
    for _ in range(2):
        world.wake.set()
        await world.clock.run_tasks()
    assert world.cpus == "0-3"
    assert await world.saved("None")
    world.assignments.body, world.assignments.gone = BODY, False
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "3"


def audited(world: World, mode: str, generation: int) -> None:
    """Have the API server's spec in another mode."""
    metadata = {**BODY["metadata"], "generation": generation}
    world.assignments.body = {**BODY, "metadata": metadata, "spec": {**BODY["spec"], "mode": mode}}
    world.wake.set()


async def test_mode_audit_gives_back_once_and_then_writes_nothing(world: World) -> None:
    audited(world, "Audit", 2)
    for _ in range(3):
        await world.clock.advance(10)
    assert world.cpus == "0-3"
    assert await world.saved("Audit")
    made = sum(len(one.result.made) for one in world.passes)
    updates = len(world.runtime.updates)
    world.model.write(Write(CONTAINER, CpuSet([1]), Step.PREPARE))
    world.model.make("kubepods/podnew")
    await world.clock.advance(20)
    assert (world.cpus, str(world.last.foreseen[CONTAINER].cpus)) == ("1", "3")
    assert str(world.last.foreseen["kubepods/podnew"].cpus) == "0-2"
    assert sum(len(one.result.made) for one in world.passes) == made
    assert len(world.runtime.updates) == updates


async def test_after_mode_audit_the_same_plan_is_enforced(world: World) -> None:
    audited(world, "Audit", 2)
    await world.clock.advance(20)
    audited(world, "Static", 3)
    await world.clock.advance(1)
    assert (world.cpus, world.last.foreseen) == ("3", {})


async def test_an_audit_says_what_each_container_has_instead(world: World) -> None:
    found: list[tuple[str, str, bool]] = []

    def note(one: Pass, summary: Summary | None) -> None:
        assert summary is not None
        assert not summary.lacks
        found[:] = [(each.container, str(each.cpus), each.exclusive) for each in summary.containers]

    world.reporter.on_pass = (note,)
    audited(world, "Audit", 2)
    await world.clock.advance(20)
    assert found == [("c", "0-3", False)]
