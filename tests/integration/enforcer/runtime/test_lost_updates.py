"""An update over CRI that overtakes a container's start is acknowledged and never made.

The runtime then reports the container as pinned although it never will be. This happened with 22
of 60 updates that were sent when containerd 2.4 reported the creation and started the container at
once. The enforcer pins the container anyway, and its status has the kernel's sets, not the
runtime's.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import ClassVar, Self

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.runtime.cri_client import CriClient
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.interface import ContainerResources, ContainerState, CriNotFoundError
from numapin_enforcer.runtime.updates.updater import NOT_STARTED_SECONDS
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.held_container_start import held_start
from support.real.kernel_cgroups import CPUSET, cpus_of
from support.real.waiting import eventually

ROUNDS = 20
CPU_1 = pb.LinuxContainerResources(cpuset_cpus="1")
PINNED = "Cpus_allowed_list:\t1"


async def test_an_update_that_overtakes_the_start_is_acknowledged_and_lost(
    kubelet: Kubelet,
) -> None:
    """Why we write to the kernel, and update the runtime for running containers only."""
    pod = await kubelet.run_pod("victim")
    async with held_start(kubelet, pod, FIRST_ACT) as container_id:
        await kubelet.update(container_id, CPU_1)
    assert await kubelet.remembered(container_id) == "1"
    assert cpus_of(f"{pod.cgroup}/{container_id}") == "0-1"


async def test_a_container_whose_start_an_update_overtakes_gets_its_cpu(
    node: Node, kubelet: Kubelet
) -> None:
    await node.start()
    await node.applied(spec())
    pod = await kubelet.run_pod("exclusive")
    async with held_start(kubelet, pod, FIRST_ACT) as container_id:
        await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
        assert cpus_of(f"{pod.cgroup}/{container_id}") == "1"
        await kubelet.update(container_id, CPU_1)
    assert await eventually(partial(kubelet.output, pod, "main")) == PINNED
    assert cpus_of(f"{pod.cgroup}/{container_id}") == "1"
    assert node.status["containers"][0]["exclusive"] is True


@pytest.mark.parametrize("begun", [True, False], ids=["that is being started", "not started yet"])
async def test_the_runtime_gets_no_update_of_a_container(
    node: Node, kubelet: Kubelet, begun: bool
) -> None:
    """Before its start an update comes too early."""
    pod = await kubelet.run_pod("exclusive")
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    waiting = held_start(kubelet, pod, FIRST_ACT) if begun else _unstarted(kubelet, pod)
    async with waiting as container_id:
        for _ in range(5):
            await asyncio.sleep(NOT_STARTED_SECONDS)
            assert await kubelet.remembered(container_id) == ""
    await eventually(lambda: cpus_of(f"{pod.cgroup}/{container_id}") == "1")
    await kubelet.until_remembered(container_id, "1")


@asynccontextmanager
async def _unstarted(kubelet: Kubelet, pod: Pod) -> AsyncIterator[str]:
    """A container that is created, and started at the end."""
    container_id = await kubelet.create(pod, "main", FIRST_ACT)
    yield container_id
    await kubelet.begin(container_id)


async def test_the_kernel_has_the_pin_although_updates_race_with_the_start(
    node: Node, kubelet: Kubelet
) -> None:
    """Others send the runtime an update for each created container; most come too early."""
    await node.start()
    await node.applied(spec())
    async with _eager(kubelet) as acknowledged:
        with Witness(node, kubelet) as witness:
            for _ in range(ROUNDS):
                pod = await kubelet.run_pod("exclusive")
                await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
                container_id = await kubelet.run(pod, "main")
                await eventually(partial(acknowledged.__contains__, container_id))
                await eventually(partial(witness.exclusive_uids.__contains__, pod.uid))
                assert cpus_of(f"{pod.cgroup}/{container_id}") == "1"
                await kubelet.remove_pod(pod)
                await eventually(lambda: not node.status["containers"], "its end to be reported")
    assert witness.lies == []


@asynccontextmanager
async def _eager(kubelet: Kubelet) -> AsyncIterator[set[str]]:
    """Sends the runtime CPU 1 for each created container; yields the acknowledged ids."""
    acknowledged: set[str] = set()

    async def send() -> None:
        async for containers in client.events():
            created = (one.id for one in containers if one.state is ContainerState.CREATED)
            for id_ in created:
                with suppress(CriNotFoundError):  # it ended
                    await client.update_resources(id_, ContainerResources(CpuSet((1,))))
                    acknowledged.add(id_)

    async with CriClient(kubelet.runtime.socket) as client:
        sending = asyncio.create_task(send())
        yield acknowledged
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


class Witness:
    """Checks during the `with` block that the container reported exclusive has CPU 1 alone."""

    MEANT: ClassVar[tuple[list[str], ...]] = ([], ["0"], ["0", "1"])
    """The CPUs of sandbox and container of the only pod, while they exist."""

    def __init__(self, node: Node, kubelet: Kubelet) -> None:
        self._node, self._kubelet = node, kubelet
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.exclusive_uids: set[str] = set()
        self.lies: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.002):
            if uid := self._exclusive_uid():
                sets = self._sets()
                if sets not in self.MEANT and uid == self._exclusive_uid():
                    self.lies.append(f"{uid} is reported exclusive on CPU 1, the sets are {sets}")
                self.exclusive_uids.add(uid)

    def _exclusive_uid(self) -> str:
        """The UID of the pod whose container is reported exclusive on CPU 1."""
        containers = self._node.status.get("containers", ())
        return next((str(one["podUID"]) for one in containers if one["exclusive"]), "")

    def _sets(self) -> list[str]:
        """The CPUs of each sandbox and container of a Guaranteed pod."""
        found = []
        for folder in (CPUSET / self._kubelet.kubepods).glob("pod*/*/"):
            with suppress(OSError):  # it is gone
                found.append(cpus_of(str(folder.relative_to(CPUSET))))
        return sorted(found)
