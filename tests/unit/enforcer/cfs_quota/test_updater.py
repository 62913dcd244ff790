import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cfs_quota import updater as limits_module
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.tree import CgroupRefusedError, Quota, Version, Write
from support.fakes.kernel import KernelModel
from support.real.enforcer_node import eventually

PATH = "kubepods/pod1"
TWO, NONE = Quota(200_000), Quota(None)
LIFTED = -1


@pytest.fixture(autouse=True)
def quick_to_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "SETTLING_SECONDS", (0.01, 0.01, 0.01))


@pytest.fixture
def model() -> KernelModel:
    made = KernelModel(Version.V2, CpuSet([0, 1]), MemSet([0]))
    made.make(PATH)
    made.groups[PATH].quota = TWO
    return made


@asynccontextmanager
async def running(folder: Path, wake: asyncio.Event) -> AsyncIterator[CfsQuotaUpdater]:
    limits = CfsQuotaUpdater(folder, wake)
    task = asyncio.create_task(limits.run())
    try:
        yield limits
    finally:
        task.cancel()


async def until(wake: asyncio.Event) -> None:
    async with asyncio.timeout(20):
        await wake.wait()
    wake.clear()


async def test_the_runtime_is_told_only_what_is_known_here(
    model: KernelModel, tmp_path: Path
) -> None:
    wake = asyncio.Event()
    async with running(tmp_path, wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        assert limits.runtime_quota_us(PATH, 0) == 0
        await until(wake)
        assert model.groups[PATH].quota == NONE
        assert limits.lifted == {PATH: TWO}
        assert limits.runtime_quota_us(PATH, 0) == LIFTED
        limits.want((), model, "kubepods", full_resync=False)
        assert limits.runtime_quota_us(PATH, LIFTED) == 200_000
        await until(wake)
        assert model.groups[PATH].quota == TWO
        assert limits.runtime_quota_us(PATH, LIFTED) == 200_000
        assert limits.runtime_quota_us(PATH, 150_000) == 150_000
        assert limits.runtime_quota_us(PATH, 0) == 200_000
        assert limits.runtime_quota_us("kubepods/other", 0) == 0


async def test_a_limit_set_right_after_the_cgroup_came_is_lifted_too(
    model: KernelModel, tmp_path: Path
) -> None:
    wake = asyncio.Event()
    model.groups[PATH].quota = NONE
    async with running(tmp_path, wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        await asyncio.sleep(0)
        model.groups[PATH].quota = TWO
        await until(wake)
        assert model.groups[PATH].quota == NONE


async def test_a_later_look_lifts_what_came_back(model: KernelModel, tmp_path: Path) -> None:
    wake = asyncio.Event()
    async with running(tmp_path, wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        await until(wake)
        await asyncio.sleep(0.1)
        model.groups[PATH].quota = Quota(300_000)
        limits.want((PATH,), model, "kubepods", full_resync=True)
        await until(wake)
        assert (model.groups[PATH].quota, limits.lifted[PATH]) == (NONE, Quota(300_000))


async def test_what_the_kernel_refuses_is_told_and_tried_again(
    model: KernelModel, tmp_path: Path
) -> None:
    wake = asyncio.Event()

    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EINVAL, "injected")

    model.before_write = refuse
    async with running(tmp_path, wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        await until(wake)
        (told,) = limits.obstacles()
        assert "CFS limits are not as they should be" in told.message
        model.before_write = lambda write: None
        while limits.problem is not None:
            await until(wake)
        assert model.groups[PATH].quota == NONE
        assert limits.obstacles() == ()


async def test_a_folder_that_cannot_be_written_lifts_nothing(
    model: KernelModel, tmp_path: Path
) -> None:
    wake = asyncio.Event()
    (tmp_path / "file").write_text("")
    async with running(tmp_path / "file", wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        await until(wake)
        assert isinstance(limits.problem, OSError)
        assert model.groups[PATH].quota == TWO


async def test_at_rest_nothing_is_lifted_until_it_is_wanted_again(
    model: KernelModel, tmp_path: Path
) -> None:
    wake = asyncio.Event()
    async with running(tmp_path, wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        limits.pause()
        await asyncio.sleep(0.1)
        assert (model.groups[PATH].quota, limits.lifted) == (TWO, {})
        limits.want((PATH,), model, "kubepods", full_resync=True)
        await until(wake)
        assert model.groups[PATH].quota == NONE


async def test_a_problem_is_none_any_more_at_rest(model: KernelModel, tmp_path: Path) -> None:
    wake = asyncio.Event()
    (tmp_path / "file").write_text("")
    async with running(tmp_path / "file", wake) as limits:
        limits.want((PATH,), model, "kubepods", full_resync=False)
        await until(wake)
        limits.pause()
        await eventually(lambda: limits.obstacles() == ())
