"""The start gate with a real operator that sees pods late: what containers do first.

Operator, enforcer, API server and containerd are real; the test plays the kubelet. On a machine
with two CPUs one container has exclusive CPUs at a time, so they start one after the other.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODES, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet, Pod
from numapin_operator.cluster import PodEvent
from support.real.enforcer_node import Node
from support.real.kernel_cgroups import cpus_of
from support.real.operators.operator_process import OperatorProcess
from support.real.operators.operator_world import RealWorld
from support.real.proxies.holding_proxy import HoldingProxy, holding_proxy
from support.real.waiting import eventually
from support.suite.left_out import before_release

SAYS = "Cpus_allowed_list:\t"


@dataclass
class Scene:
    """A node whose operator sees each pod late."""

    world: RealWorld
    node: Node
    kubelet: Kubelet
    proxy: HoldingProxy

    async def gated(self, timeout: str) -> None:
        """Have a policy with a start gate in force."""
        spec = {"reserved": {"cpus": "0"}, "startGate": "Wait", "startTimeout": timeout}
        await self.world.put_policy(spec, "policy")
        await eventually(lambda: gate_of(self.node).get("active"), "the gate to be active")

    async def bound(self) -> tuple[PodEvent, Pod]:
        """A pod that asks for one CPU and has just been bound, and its sandbox."""
        bound = await self.world.add_pod(self.node.name, cpu="1")
        return bound, await self.kubelet.run_pod(bound.pod, uid=bound.uid)

    async def said(self, pod: Pod) -> str:
        """What the container said first: the CPUs that its program may use."""
        text = await eventually(lambda: self.kubelet.output(pod, "main"), "the program")
        return str(text).removeprefix(SAYS)

    async def assigned(self) -> str:
        """The CPUs of the one container that has some."""
        found = (await self.world.spec(self.node.name)).get("containers") or []
        return "".join(one["cpus"] for one in found)

    async def removed(self, bound: PodEvent, pod: Pod) -> None:
        """Delete a pod; returns when its CPUs are free."""
        await self.kubelet.remove_pod(pod)
        await self.world.delete_pod(bound)

        async def free() -> bool:
            return not await self.assigned() and not self.node.status.get("running")

        await eventually(free, "the CPUs to be free")


def gate_of(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.status.get("startGate") or {}
    return found


@asynccontextmanager
async def late_operator(world: RealWorld, folder: Path) -> AsyncIterator[HoldingProxy]:
    """The operator, behind a proxy."""
    async with holding_proxy(kubeconfig_login(str(world.operator_kubeconfig))) as proxy:
        operator = OperatorProcess(proxy.kubeconfig(folder), folder)
        await operator.start()
        try:
            yield proxy
        finally:
            await operator.stop()


@pytest.fixture
async def scene(
    contract: ControlPlane, node: Node, kubelet: Kubelet, tmp_path: Path
) -> AsyncIterator[Scene]:
    async with connect(kubeconfig_login(str(contract.kubeconfig))) as admin:
        world = RealWorld(contract, tmp_path, admin)
        amounts = {"cpu": "2", "memory": "8Gi", "pods": "250"}
        status = {"capacity": amounts, "allocatable": amounts}
        await admin.merge_patch(
            NODES, Key(node.name), {"metadata": {"labels": {"mark": world.mark}}}
        )
        await admin.merge_patch(NODES, Key(node.name), {"status": status}, subresource="status")
        await node.start(**{"nri-socket": str(kubelet.runtime.nri_socket)})
        async with late_operator(world, tmp_path) as proxy:
            try:
                yield Scene(world, node, kubelet, proxy)
            finally:
                await world.clear()


@pytest.mark.parametrize(
    ("count", "timeout"),
    [
        pytest.param(10, "1500ms", id="10"),
        pytest.param(100, "1s", id="100", marks=before_release),
    ],
)
async def test_containers_print_their_own_cpus_first_although_the_operator_sees_them_late(
    scene: Scene, count: int, timeout: str
) -> None:
    await scene.gated(timeout)
    found = []
    for _ in range(count):
        scene.proxy.hold("pods")
        bound, pod = await scene.bound()
        running = asyncio.create_task(scene.kubelet.run(pod, "main", FIRST_ACT))
        await asyncio.sleep(0.5)
        assert not running.done()
        assert not await scene.assigned()
        scene.proxy.let_go("pods")
        await running
        own, said = await scene.assigned(), await scene.said(pod)
        found.append(said == own != "")
        await eventually(lambda: gate_of(scene.node).get("bornPinned") == 1, "it to be reported")
        await scene.removed(bound, pod)
    assert found == [True] * count


async def test_a_container_starts_shared_where_the_operator_is_five_seconds_late(
    scene: Scene,
) -> None:
    await scene.gated("1s")
    shared = (await scene.world.spec(scene.node.name))["pools"]["shared"]
    scene.proxy.hold("pods")
    _, pod = await scene.bound()
    began = time.monotonic()
    id_ = await scene.kubelet.run(pod, "main", FIRST_ACT)
    assert time.monotonic() - began >= 1.0
    assert await scene.said(pod) == shared
    await eventually(lambda: gate_of(scene.node).get("message"), "the vain wait to be reported")
    assert gate_of(scene.node)["message"].startswith("a container waited in vain")
    assert scene.node.condition("Ready")[:2] == ("True", "StartGateOpen")
    await asyncio.sleep(5.0 - (time.monotonic() - began))
    assert not await scene.assigned()
    scene.proxy.let_go("pods")
    await eventually(scene.node.reports_exclusive, "the container to be pinned late")
    assert cpus_of(f"{pod.cgroup}/{id_}") == await scene.assigned()
    found = gate_of(scene.node)
    assert (found["bornPinned"], found["bornShared"]) == (0, [f"{pod.uid}/main"])
    assert "message" not in found
