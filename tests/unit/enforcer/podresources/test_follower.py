"""Devices follow passes: they are reported while a spec is enforced, in a NodeReport alone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import pytest

from numapin_api.schema.plain import DevicesStatus
from numapin_enforcer.podresources.asking import KubeletDevices
from support.fakes.kubelets.podresources import FakeKubelet
from support.fakes.worlds.followed_node import CPU_3, POD, Node

GPU = "example.com/gpu"


@pytest.fixture
def kubelet(
    node: Node,
    tmp_path: Path,
    wake: asyncio.Event,
    start: Callable[[Awaitable[None]], None],
) -> FakeKubelet:
    """The kubelet of the node, which has given a GPU to pod 1."""
    made = FakeKubelet(devices=[(GPU, "g0", (0,)), (GPU, "g1", (1,))], clock=node.clock)
    made.has("d/p", c=[(GPU, "g1", (1,))])
    socket, devices = tmp_path / "kubelet.sock", node.followers.devices
    socket.touch()
    devices.kubelet = KubeletDevices(socket, node.runtime, wake, node.clock, made.connect)
    start(devices.kubelet.run())
    return made


def reported(node: Node) -> DevicesStatus | None:
    return node.facts().content.devices


async def test_the_devices_of_a_pod_are_a_fact_of_the_node(
    node: Node, kubelet: FakeKubelet
) -> None:
    node.runtime.pod_names["1"] = "d/p"
    await node.make_pass(CPU_3)
    found = reported(node)
    assert found is not None
    assert [(one.pod_uid, one.container, one.ids) for one in found.containers] == [
        ("1", "c", ("g1",))
    ]
    node.model.vanish(POD)
    await node.make_pass(CPU_3, full=True)
    assert reported(node) == DevicesStatus(None, found.resources, ())


async def test_a_report_waits_for_the_first_answer_alone(node: Node, kubelet: FakeKubelet) -> None:
    kubelet.may_answer.clear()
    await node.enforce(CPU_3)
    assert node.finishes_soon()
    kubelet.may_answer.set()
    await node.clock.run_tasks()
    await node.make_pass(CPU_3)
    assert not node.finishes_soon()


async def test_devices_are_not_asked_for_while_nothing_is_enforced(
    node: Node, kubelet: FakeKubelet
) -> None:
    await node.make_pass(None)
    assert reported(node) is None
    assert kubelet.asked == []
    await node.make_pass(CPU_3)
    assert reported(node) is not None
    await node.make_pass(None)
    assert reported(node) is None


async def test_a_defect_is_reported_as_such(
    node: Node, tmp_path: Path, wake: asyncio.Event, start: Callable[[Awaitable[None]], None]
) -> None:
    def fails(_: Path) -> NoReturn:
        raise ZeroDivisionError

    broken = KubeletDevices(tmp_path, node.runtime, wake, node.clock, fails)
    node.followers.devices.kubelet = broken
    start(broken.run())
    await node.make_pass(CPU_3)
    assert "asking the kubelet for devices" in str(node.working)
