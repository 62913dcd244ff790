"""`--release` over a model of the kernel, with a runtime and a systemd that a test controls."""

import asyncio
import errno
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_enforcer.assignment.copy_file import FILE_NAME
from numapin_enforcer.cfs_quota.lifted import LiftedQuotas
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.naming import Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Quota, Step, Write
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.node.lock_keeper import POLL_SECONDS, POLLS
from numapin_enforcer.release import ReleaseError, lock_for_release, release_all, release_host
from numapin_enforcer.runtime.interface import ContainerResources, CriRefusedError
from numapin_enforcer.systemd.interface import (
    SliceSets,
    SystemdAbsentError,
    SystemdDeniedError,
    SystemdUnavailableError,
)
from support.fakes.kernels.host_cgroups import FakeHost, HostWorld
from support.fakes.kernels.pods import ModelFinder, model_pods
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd

ID = "a" * 64
ROOT = "kubepods.slice"
POD = f"{ROOT}/kubepods-pod1.slice"
CONTAINER = f"{POD}/cri-containerd-{ID}.scope"
BURSTABLE = f"{ROOT}/kubepods-burstable.slice"
ALL, ONE, MEMS = CpuSet(range(4)), CpuSet((3,)), MemSet((0,))
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)


class Node:
    """A container pinned to CPU 3 and a QoS class fenced to the others."""

    def __init__(self, state_dir: Path, runtime: FakeRuntime) -> None:
        self.model = WatchedModel(Version.V2, ALL, MEMS, root=ROOT)
        for path in (BURSTABLE, POD, CONTAINER):
            self.model.make(path)
        self.model.enter(CONTAINER)
        self.model.groups[CONTAINER].cpus = ONE
        self.model.groups[BURSTABLE].cpus = ALL - ONE
        self.runtime, self.systemd, self.state_dir = runtime, FakeSystemd(BURSTABLE), state_dir
        runtime.has(ID, "main")
        self.systemd.known[BURSTABLE] = SliceSets(ALL - ONE, MEMS)
        (state_dir / FILE_NAME).write_text("{}")
        self.kubepods = ModelFinder(model_pods(self.model, Driver.SYSTEMD))

    async def release(self) -> None:
        systemd, folder = self.systemd, self.state_dir
        await release_all(MACHINE, self.kubepods, self.runtime, lambda: systemd, folder)

    def refuse_writes(self, path: str, value: CpuSet) -> None:
        def refuse(write: Write) -> None:
            if write.path == path and write.value == value:
                raise CgroupRefusedError(path, str(value), errno.EBUSY, "busy")

        self.model.before_write = refuse

    @property
    def cpus(self) -> dict[str, str]:
        cgroups = self.model.read().cgroups
        return {path: str(one.effective_cpus) for path, one in cgroups.items()}


@pytest.fixture
def node(tmp_path: Path, runtime: FakeRuntime) -> Node:
    return Node(tmp_path, runtime)


async def test_every_cgroup_has_what_its_parent_has(node: Node) -> None:
    await node.release()
    assert set(node.cpus.values()) == {"0-3"}


async def test_the_local_copy_is_deleted(node: Node) -> None:
    await node.release()
    assert not (node.state_dir / FILE_NAME).exists()


async def test_the_runtime_is_sent_the_cpus_of_a_released_container(node: Node) -> None:
    await node.release()
    assert node.runtime.updates == [(ID, ContainerResources(ALL, MEMS, 0))]


async def test_the_runtime_is_sent_nothing_for_a_container_that_was_not_restricted(
    node: Node,
) -> None:
    node.model.groups[CONTAINER].cpus = ALL
    await node.release()
    assert node.runtime.updates == []


async def test_systemd_is_reset_and_its_connection_closed(node: Node) -> None:
    await node.release()
    assert node.systemd.known == {BURSTABLE: SliceSets()}
    assert node.systemd.closed


async def test_what_systemd_writes_before_it_is_reset_is_released_too(node: Node) -> None:
    """It writes what it has whenever a property of the slice changes, as the kubelet does."""

    def write_older() -> None:
        node.model.write(Write(BURSTABLE, ALL - ONE, Step.NARROW))

    node.systemd.before_write = write_older
    await node.release()
    assert node.cpus[BURSTABLE] == "0-3"


async def test_a_slice_that_systemd_does_not_restrict_is_not_written(node: Node) -> None:
    node.systemd.known[BURSTABLE] = SliceSets()
    await node.release()
    assert node.systemd.writes == []


async def test_a_removed_cfs_limit_is_restored_in_kernel_and_runtime(node: Node) -> None:
    node.model.groups[CONTAINER].quota = Quota(200_000)
    LiftedQuotas(node.model, ROOT, node.state_dir).update((CONTAINER,))
    await node.release()
    assert node.model.groups[CONTAINER].quota == Quota(200_000)
    assert node.runtime.updates == [(ID, ContainerResources(ALL, MEMS, 200_000))]


async def test_a_refused_write_is_reported_and_the_rest_released(node: Node) -> None:
    node.refuse_writes(CONTAINER, ALL)
    with pytest.raises(ReleaseError, match=rf"not everything was released: .*{ID}"):
        await node.release()
    assert node.cpus[CONTAINER] == "3"
    assert node.cpus[BURSTABLE] == "0-3"


async def test_a_cgroup_that_another_program_sets_back_is_reported(node: Node) -> None:
    def undo(write: Write) -> None:
        if write.path == CONTAINER and write.value == ALL:
            node.model.groups[CONTAINER].cpus = ONE
            node.model.written.append(CONTAINER)

    node.model.after_write = undo
    why = f"cgroup {CONTAINER} has CPU {ONE} instead of {ALL}: another program sets it"
    with pytest.raises(ReleaseError, match=re.escape(why)):
        await node.release()


async def test_a_runtime_that_refuses_is_reported(node: Node) -> None:
    node.runtime.refuse[ID] = CriRefusedError("UNKNOWN: half done")
    with pytest.raises(ReleaseError, match=f"container {ID} was not updated in the runtime"):
        await node.release()


async def test_a_container_that_the_runtime_does_not_list_is_no_problem(node: Node) -> None:
    node.runtime.known.clear()
    await node.release()
    assert node.runtime.updates == []


@pytest.mark.parametrize("kind", [SystemdUnavailableError, SystemdDeniedError])
async def test_a_systemd_that_does_not_answer_is_reported(
    node: Node, kind: type[Exception]
) -> None:
    """Also one that denies it: an enforcer with more rights may have set its slices."""
    node.systemd.failure = kind("no answer")
    with pytest.raises(ReleaseError, match=r"systemd may still have cpusets for .*burstable"):
        await node.release()
    assert node.systemd.closed


async def test_an_absent_systemd_is_no_problem(node: Node) -> None:
    node.systemd.failure = SystemdAbsentError("no socket")
    await node.release()
    assert node.systemd.closed


async def test_there_is_nothing_to_release_without_the_kubelets_cgroups(
    node: Node, has_logged: Callable[[str], bool]
) -> None:
    node.kubepods.is_there = False
    await node.release()
    assert has_logged("there is nothing to release")
    assert not (node.state_dir / FILE_NAME).exists(), "a later installation would enforce it"


@pytest.fixture
def has_logged(caplog: pytest.LogCaptureFixture) -> Callable[[str], bool]:
    caplog.set_level("INFO")
    return lambda text: text in caplog.messages


async def test_nothing_is_released_while_an_enforcer_runs(tmp_path: Path) -> None:
    enforcer, clock = NodeLock(tmp_path), ManualClock()
    enforcer.create()
    assert enforcer.try_acquire()
    locking = asyncio.create_task(lock_for_release(NodeLock(tmp_path), clock))
    await clock.advance((POLLS + 1) * POLL_SECONDS)
    with pytest.raises(ReleaseError, match="nothing was released: an enforcer runs"):
        await locking


async def test_a_node_without_a_lock_file_can_be_released(tmp_path: Path) -> None:
    await lock_for_release(NodeLock(tmp_path), ManualClock())


def host_of(tmp_path: Path, clock: ManualClock) -> HostWorld:
    host = FakeHost(ALL, clears=True)
    host.make("system.slice")
    return HostWorld(host, tmp_path, asyncio.Event(), clock)


async def test_cgroups_of_the_host_get_back_what_they_had(node: Node, tmp_path: Path) -> None:
    world = host_of(tmp_path, ManualClock())
    await world.keeper().bring(KeepOff(ONE, ALL - ONE, (ROOT,)))
    assert world.host.sets == {"system.slice": str(ALL - ONE)}
    await release_host(world.keeper(), node.kubepods)
    assert world.host.sets == {"system.slice": ""}
    assert world.host.calls[-1] == "close"
    world.host.calls.clear()
    await release_host(world.keeper(), node.kubepods)
    assert world.host.calls == [], "there is nothing left"


async def test_what_a_cgroup_of_the_host_has_not_got_back_is_an_error(
    node: Node, tmp_path: Path
) -> None:
    world = host_of(tmp_path, ManualClock())
    await world.keeper().bring(KeepOff(ONE, ALL - ONE, (ROOT,)))
    world.host.failure = SystemdUnavailableError("no answer")
    with pytest.raises(
        ReleaseError, match=r"not everything was released: system\.slice: no answer"
    ):
        await release_host(world.keeper(), node.kubepods)
    assert world.keeper().found.cgroups
