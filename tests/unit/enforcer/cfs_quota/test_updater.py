"""CFS limits are updated in the background, and a failure is retried."""

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cfs_quota.plan import UnlimitedCgroups
from numapin_enforcer.cfs_quota.updater import KUBELET_SECONDS, CfsQuotaUpdater
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Quota, Write
from support.fakes.manual_clock import LIMIT_SECONDS, ManualClock

PATH = "kubepods/pod1"
TWO, NONE = Quota(200_000), Quota(None)
UNLIMITED = UnlimitedCgroups((PATH,))


@pytest.fixture
def model() -> KernelModel:
    made = KernelModel(Version.V2, CpuSet([0, 1]), MemSet([0]))
    made.make(PATH)
    made.groups[PATH].quota = TWO
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def unwritable(folder: Path) -> None:
    """There is a file in the folder's place."""
    folder.write_text("")


@pytest.fixture
def updater(
    folder: Path,
    wake: asyncio.Event,
    clock: ManualClock,
    start: Callable[[Awaitable[None]], None],
) -> CfsQuotaUpdater:
    made = CfsQuotaUpdater(folder, wake, clock)
    start(made.run())
    return made


async def until(wake: asyncio.Event) -> None:
    async with asyncio.timeout(20):
        await wake.wait()
    wake.clear()


def waits_for(clock: ManualClock, seconds: float) -> bool:
    return clock.pending_seconds() == pytest.approx((seconds,))


def refuse(write: Write) -> None:
    raise CgroupRefusedError(write.path, str(write.value), errno.EINVAL, "injected")


async def test_the_runtime_is_sent_only_a_limit_that_was_restored_here(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event
) -> None:
    """Until it has it: what the kubelet sends the runtime must not be overwritten."""
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await until(wake)
    assert (model.groups[PATH].quota, updater.lifted) == (NONE, {PATH: TWO})
    assert updater.runtime_quota_us(PATH) == 0
    updater.want(UnlimitedCgroups(), model, "kubepods", full_resync=False)
    assert updater.runtime_quota_us(PATH) == 0
    await until(wake)
    assert model.groups[PATH].quota == TWO
    assert updater.runtime_quota_us(PATH) == 200_000
    model.groups[PATH].quota = Quota(150_000)
    assert updater.runtime_quota_us(PATH) == 150_000, "set by a resize meanwhile"
    assert updater.runtime_may_lack == {PATH}
    updater.note_runtime_update(PATH, 150_000)
    assert (updater.runtime_quota_us(PATH), updater.runtime_may_lack) == (0, frozenset())
    updater.want(UnlimitedCgroups(), model, "kubepods", full_resync=True)
    assert updater.runtime_quota_us("kubepods/other") == 0


@pytest.mark.parametrize("limit", [Quota(150_000), None])
async def test_a_limit_is_restored_once_the_kubelet_had_time_to_write_a_newer_one(
    updater: CfsQuotaUpdater,
    model: KernelModel,
    wake: asyncio.Event,
    clock: ManualClock,
    limit: Quota | None,
) -> None:
    """What is written later than what the kubelet writes would stay until its next resize."""
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await until(wake)
    updater.want(UnlimitedCgroups(may_be_resized=True), model, "kubepods", full_resync=False)
    await clock.advance(KUBELET_SECONDS - 0.1)
    assert (model.groups[PATH].quota, updater.lifted) == (NONE, {PATH: TWO})
    if limit is not None:
        model.groups[PATH].quota = limit
    async with asyncio.timeout(LIMIT_SECONDS):
        while updater.lifted:
            await clock.advance(0.2)
    assert model.groups[PATH].quota == (limit or TWO)
    assert updater.runtime_quota_us(PATH) == (0 if limit else 200_000)


async def test_a_limit_that_the_runtime_writes_again_is_lifted_at_once(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event
) -> None:
    """The runtime keeps that of the kubelet, and writes it at each update of its cpuset."""
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await until(wake)
    model.groups[PATH].quota = Quota(300_000)
    updater.note_runtime_update(PATH, 0)
    await until(wake)
    assert (model.groups[PATH].quota, updater.lifted) == (NONE, {PATH: Quota(300_000)})


@pytest.mark.parametrize("seconds", [0.2, 1.0, 3.0])
async def test_a_limit_set_after_the_cgroup_was_created_is_lifted(
    updater: CfsQuotaUpdater,
    model: KernelModel,
    wake: asyncio.Event,
    clock: ManualClock,
    seconds: float,
) -> None:
    model.groups[PATH].quota = NONE
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    for recheck_seconds in (0.2, 1.0, 3.0):
        await clock.until(partial(waits_for, clock, recheck_seconds))
        if recheck_seconds == seconds:
            model.groups[PATH].quota = TWO
        await clock.advance(recheck_seconds)
        if recheck_seconds == seconds:
            break
    await until(wake)
    assert model.groups[PATH].quota == NONE


async def test_limits_that_the_kubelet_sets_at_a_resize_are_lifted(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event, clock: ManualClock
) -> None:
    """At once, and when it sets that of the pod only later."""
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await until(wake)
    for recheck_seconds in (0.2, 1.0, 3.0):
        await clock.until(partial(waits_for, clock, recheck_seconds))
        await clock.advance(recheck_seconds)
    for limit in (Quota(300_000), Quota(400_000)):
        model.groups[PATH].quota = limit
        updater.note_resize()
        await until(wake)
        assert (model.groups[PATH].quota, updater.lifted[PATH]) == (NONE, limit)
    model.groups[PATH].quota = Quota(500_000)
    await clock.until(partial(waits_for, clock, 0.2))
    await clock.advance(0.2)
    await until(wake)
    assert updater.lifted[PATH] == Quota(500_000)


async def test_a_full_resync_lifts_a_limit_that_came_back(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event
) -> None:
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await until(wake)
    model.groups[PATH].quota = Quota(300_000)
    updater.want(UNLIMITED, model, "kubepods", full_resync=True)
    await until(wake)
    assert (model.groups[PATH].quota, updater.lifted[PATH]) == (NONE, Quota(300_000))


async def test_a_write_that_the_kernel_refuses_is_reported_and_retried(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event, clock: ManualClock
) -> None:
    model.before_write = refuse
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await clock.until(updater.obstacles)
    (obstacle,) = updater.obstacles()
    assert "CFS limits could not be set" in obstacle.message
    model.before_write = lambda write: None
    wake.clear()
    await clock.advance(0.5)
    await clock.until(lambda: not updater.obstacles())
    assert model.groups[PATH].quota == NONE
    assert wake.is_set()


async def test_an_unexpected_exception_is_reported_and_retried(
    updater: CfsQuotaUpdater, model: KernelModel, clock: ManualClock
) -> None:
    def fail(write: Write) -> None:
        raise ZeroDivisionError("injected")

    model.before_write = fail
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await clock.until(updater.obstacles)
    (obstacle,) = updater.obstacles()
    assert obstacle.reason == "InternalError"
    assert "updating CFS limits failed unexpectedly" in obstacle.message
    assert "ZeroDivisionError: injected" in obstacle.message
    model.before_write = lambda write: None
    await clock.advance(0.5)
    await clock.until(lambda: not updater.obstacles())
    assert model.groups[PATH].quota == NONE


@pytest.mark.usefixtures("unwritable")
async def test_nothing_is_lifted_if_the_folder_cannot_be_written(
    updater: CfsQuotaUpdater, model: KernelModel, clock: ManualClock
) -> None:
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await clock.until(lambda: updater.problem)
    assert isinstance(updater.problem, OSError)
    assert model.groups[PATH].quota == TWO


async def test_a_paused_updater_lifts_nothing_until_it_is_wanted_again(
    updater: CfsQuotaUpdater, model: KernelModel, wake: asyncio.Event, clock: ManualClock
) -> None:
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    updater.pause()
    await clock.advance(10)
    assert (model.groups[PATH].quota, updater.lifted) == (TWO, {})
    updater.want(UNLIMITED, model, "kubepods", full_resync=True)
    await until(wake)
    assert model.groups[PATH].quota == NONE


async def test_an_update_may_be_paused_while_it_writes(
    folder: Path, model: KernelModel, wake: asyncio.Event
) -> None:
    """The kubelet's policy turns static while a write is in flight."""
    writing, may_write = threading.Event(), threading.Event()

    def block(write: Write) -> None:
        writing.set()
        may_write.wait(20)

    model.before_write = block
    updater = CfsQuotaUpdater(folder, wake)
    task = asyncio.create_task(updater.run())
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await asyncio.to_thread(writing.wait, 20)
    updater.pause()
    may_write.set()
    woken = asyncio.create_task(until(wake))
    await asyncio.wait((task, woken), return_when=asyncio.FIRST_COMPLETED)
    assert not task.done()
    assert updater.lifted == {PATH: TWO}
    task.cancel()
    await asyncio.gather(task, woken, return_exceptions=True)


@pytest.mark.usefixtures("unwritable")
async def test_a_paused_updater_has_no_problem(
    updater: CfsQuotaUpdater, model: KernelModel, clock: ManualClock
) -> None:
    updater.want(UNLIMITED, model, "kubepods", full_resync=False)
    await clock.until(updater.obstacles)
    updater.pause()
    await clock.until(lambda: not updater.obstacles())
