"""What systemd is to remember of the kubelet's slices, and that it comes to remember it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import Driver, Layout
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version
from numapin_enforcer.plan.desired import Desired
from numapin_enforcer.systemd import updater as slice_recorder
from numapin_enforcer.systemd.slices import (
    SliceSets,
    SystemdAbsentError,
    SystemdRefusedError,
    SystemdUnavailableError,
    qos_slices,
    slice_sets,
    unit_name,
)
from numapin_enforcer.systemd.updater import SliceUpdater
from support.fakes.systemd import FakeSystemd
from support.real.waiting import eventually

LAYOUT = Layout(Driver.SYSTEMD)
ROOT = "kubepods.slice"
BURSTABLE = f"{ROOT}/kubepods-burstable.slice"
BEST_EFFORT = f"{ROOT}/kubepods-besteffort.slice"
POD = f"{BEST_EFFORT}/kubepods-besteffort-pod1.slice"
ALL, SHARED = CpuSet.parse("0-3"), CpuSet.parse("0-1")
MEMS = MemSet((0,))
NARROW, WIDE = SliceSets(SHARED, MEMS), SliceSets(ALL, MEMS)


def enforced(version: Version = Version.V2, **effective: str) -> tuple[dict[str, Desired], Tree]:
    """A tree in which everything but the root is to have the shared CPUs, and asked for them."""
    cgroups: dict[str, Cgroup] = {}
    desired: dict[str, Desired] = {}
    for path in (ROOT, BURSTABLE, BEST_EFFORT, POD):
        word = path.removesuffix(".slice").rpartition("-")[2]
        has = CpuSet.parse(effective[word]) if word in effective else SHARED
        cgroups[path] = Cgroup(path, SHARED, MEMS, has, MEMS)
        desired[path] = Desired(SHARED, MEMS)
    tree = Tree(version, ROOT, cgroups)
    return desired, tree


def test_both_classes_are_told_what_they_asked_for_and_have() -> None:
    assert slice_sets(*enforced(), LAYOUT) == {BURSTABLE: NARROW, BEST_EFFORT: NARROW}


def test_what_the_kernel_does_not_have_yet_is_not_told() -> None:
    told = slice_sets(*enforced(besteffort="0-3"), LAYOUT)
    assert told == {BURSTABLE: NARROW, BEST_EFFORT: None}


def test_nothing_is_told_where_systemd_has_no_part_in_cpusets() -> None:
    _, tree = enforced(Version.V1)
    assert not list(qos_slices(tree, LAYOUT))
    _, tree = enforced()
    assert not list(qos_slices(tree, Layout(Driver.CGROUPFS)))


@pytest.mark.parametrize(
    ("root", "unit"),
    [
        ("/", "kubepods-besteffort.slice"),
        ("/kubelet", "kubelet-kubepods-besteffort.slice"),
        ("/my-lab", "my_lab-kubepods-besteffort.slice"),
    ],
)
def test_a_units_name_is_the_last_part_of_its_cgroup(root: str, unit: str) -> None:
    layout = Layout(Driver.SYSTEMD, root)
    tree = Tree(Version.V2, layout.root, dict.fromkeys([f"{layout.root}/{unit}"]))  # type: ignore[arg-type]
    assert [unit_name(path) for path in qos_slices(tree, layout)] == [unit]


@pytest.fixture
def wake() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def systemd() -> FakeSystemd:
    return FakeSystemd(BURSTABLE, BEST_EFFORT)


@pytest.fixture
async def recorder(
    systemd: FakeSystemd, wake: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SliceUpdater]:
    monkeypatch.setattr(slice_recorder, "FIRST_RETRY_SECONDS", 0.01)
    made = SliceUpdater(lambda: systemd, wake)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def is_settling(recorder: SliceUpdater) -> bool:
    return recorder.finishes_soon


async def settled(recorder: SliceUpdater) -> None:
    await eventually(lambda: not recorder.finishes_soon, "systemd to be told")


async def test_systemd_comes_to_remember_and_is_not_told_again(
    recorder: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event
) -> None:
    recorder.want({BEST_EFFORT: NARROW, BURSTABLE: WIDE})
    assert is_settling(recorder)
    await settled(recorder)
    assert systemd.known == {BEST_EFFORT: NARROW, BURSTABLE: WIDE}
    assert wake.is_set()
    assert recorder.stale_cpus == {BEST_EFFORT: SHARED, BURSTABLE: ALL}
    reads = systemd.reads
    recorder.want({BEST_EFFORT: NARROW, BURSTABLE: WIDE})
    assert not is_settling(recorder)
    await asyncio.sleep(0)
    assert (systemd.reads, len(systemd.told)) == (reads, 2)


async def test_what_it_remembers_from_before_is_not_told_again(
    recorder: SliceUpdater, systemd: FakeSystemd
) -> None:
    systemd.known[BEST_EFFORT] = NARROW
    recorder.want({BEST_EFFORT: NARROW})
    await settled(recorder)
    assert not systemd.told


async def test_what_it_may_still_write_lingers_until_it_is_told(
    recorder: SliceUpdater, systemd: FakeSystemd
) -> None:
    recorder.want({BEST_EFFORT: WIDE})
    await settled(recorder)
    systemd.gate.clear()
    recorder.want({BEST_EFFORT: NARROW})
    await eventually(lambda: systemd.reads > 2)
    assert recorder.stale_cpus[BEST_EFFORT] == ALL
    systemd.gate.set()
    await settled(recorder)
    assert recorder.stale_cpus[BEST_EFFORT] == SHARED


async def test_what_is_wanted_while_it_is_told_has_the_last_word(
    recorder: SliceUpdater, systemd: FakeSystemd
) -> None:
    seen: list[CpuSet] = []

    def narrow() -> None:
        recorder.want({BEST_EFFORT: NARROW})
        seen.append(recorder.stale_cpus[BEST_EFFORT])

    systemd.before_write = narrow
    recorder.want({BEST_EFFORT: WIDE})
    await eventually(lambda: systemd.known[BEST_EFFORT] == NARROW)
    await settled(recorder)
    assert seen[0] == ALL
    assert recorder.stale_cpus[BEST_EFFORT] == SHARED
    assert [sets for _, sets in systemd.told] == [WIDE, NARROW]


async def test_none_leaves_what_was_wanted(recorder: SliceUpdater, systemd: FakeSystemd) -> None:
    recorder.want({BEST_EFFORT: NARROW, BURSTABLE: None})
    await settled(recorder)
    recorder.want({BEST_EFFORT: None, BURSTABLE: None})
    await settled(recorder)
    assert systemd.known == {BEST_EFFORT: NARROW, BURSTABLE: SliceSets()}


async def test_a_slice_that_somebody_wrote_is_asked_about_again(
    recorder: SliceUpdater, systemd: FakeSystemd
) -> None:
    recorder.want({BEST_EFFORT: NARROW})
    await settled(recorder)
    systemd.known[BEST_EFFORT] = WIDE
    recorder.note_external_change(BEST_EFFORT)
    recorder.want({BEST_EFFORT: NARROW})
    await eventually(lambda: systemd.known[BEST_EFFORT] == NARROW)


async def test_a_slice_that_went_lingers_no_more(
    recorder: SliceUpdater, systemd: FakeSystemd
) -> None:
    recorder.want({BEST_EFFORT: NARROW})
    await settled(recorder)
    recorder.want({})
    assert recorder.stale_cpus[BEST_EFFORT] == CpuSet()
    del systemd.known[BEST_EFFORT]
    recorder.want({BEST_EFFORT: WIDE})
    await settled(recorder)
    assert recorder.stale_cpus[BEST_EFFORT] == CpuSet()
    assert not recorder.obstacles()


async def test_a_failure_is_told_and_tried_again(
    recorder: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event
) -> None:
    systemd.failure = SystemdUnavailableError("no answer")
    recorder.want({BEST_EFFORT: NARROW})
    await wake.wait()
    (told,) = recorder.obstacles()
    assert (told.reason, told.message) == (
        "SystemdUnavailable",
        "systemd was not told: no answer",
    )
    assert not recorder.finishes_soon
    systemd.failure = None
    await eventually(lambda: systemd.known[BEST_EFFORT] == NARROW)
    await eventually(lambda: not recorder.obstacles())


async def test_a_word_that_is_not_kept_is_a_refusal(
    recorder: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event
) -> None:
    systemd.deaf = True
    recorder.want({BEST_EFFORT: NARROW})
    await wake.wait()
    assert isinstance(recorder.problem, SystemdRefusedError)
    assert recorder.stale_cpus[BEST_EFFORT] == SHARED
    systemd.deaf = False
    await eventually(lambda: not recorder.obstacles())


async def test_without_a_socket_the_status_says_so_and_nothing_is_in_the_way(
    recorder: SliceUpdater, systemd: FakeSystemd, wake: asyncio.Event
) -> None:
    systemd.failure = SystemdAbsentError("there is no socket")
    recorder.want({BEST_EFFORT: NARROW})
    await wake.wait()
    assert recorder.note == "systemd is not told: there is no socket"
    assert not recorder.obstacles()
    recorder.pause()
    assert not recorder.note


async def test_one_that_does_not_answer_is_not_asked_at_every_pass(
    systemd: FakeSystemd, wake: asyncio.Event
) -> None:
    """Every failure wakes the loop, which wants the same again; the first wait is half a second."""
    recorder = SliceUpdater(lambda: systemd, wake)
    task = asyncio.create_task(recorder.run())
    systemd.failure = SystemdAbsentError("there is no socket")
    recorder.want({BEST_EFFORT: NARROW})
    for _ in range(100):
        await asyncio.sleep(0)
        if wake.is_set():
            wake.clear()
            recorder.want({BEST_EFFORT: NARROW})
    assert 1 <= systemd.reads <= 3
    systemd.failure = None
    recorder.want({BEST_EFFORT: WIDE})
    await eventually(lambda: systemd.known[BEST_EFFORT] == WIDE)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_slow_systemd_holds_no_status_back(
    recorder: SliceUpdater,
    systemd: FakeSystemd,
    wake: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slice_recorder, "PATIENCE_SECONDS", 0.01)
    systemd.gate.clear()
    recorder.want({BEST_EFFORT: NARROW})
    await wake.wait()
    assert not recorder.finishes_soon
    recorder.want({BEST_EFFORT: NARROW})
    assert not recorder.finishes_soon
    (told,) = recorder.obstacles()
    assert (told.reason, told.message) == (
        "Applying",
        "systemd is being told what kubepods-besteffort.slice may use",
    )
    systemd.gate.set()
    await eventually(lambda: systemd.known[BEST_EFFORT] == NARROW)


async def test_its_connection_ends_with_us(systemd: FakeSystemd, wake: asyncio.Event) -> None:
    recorder = SliceUpdater(lambda: systemd, wake)
    task = asyncio.create_task(recorder.run())
    recorder.want({BEST_EFFORT: NARROW})
    await settled(recorder)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert systemd.closed
