"""Pods with devices on a real API server: they wait for their node's report, but not for long."""

import pytest

from numapin_client.resources import PODS, Json, Key
from numapin_operator.cluster import PodEvent
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan
from support.real.operators.operator_world import RealWorld
from support.values.operator import enforcer_status
from support.values.placement import machine

NIC = "example.com/nic"
POLICY = {"reserved": {"count": 1}, "topology": {"policy": "SingleNUMANode"}}
MACHINE = machine(16, numa_nodes=2)
"""NUMA node 0 has CPUs 0-7, of which CPU 0 is reserved, NUMA node 1 has 8-15."""


async def report(world: RealWorld, node: str, *rows: Json) -> None:
    """Report all in force, a NIC on each NUMA node, and which of them containers have."""
    generation = (await world.assignment(node))["metadata"]["generation"]
    nics = [{"resource": NIC, "numaNodes": near, "count": 1} for near in "01"]
    devices = {"resources": nics, "containers": list(rows)}
    running = [one["podUID"] for one in (await world.spec(node)).get("containers") or []]
    status = enforcer_status(generation, topology=MACHINE, running=running)
    await world.report(node, status | {"devices": devices})


def had_by(pod: PodEvent, near: str) -> Json:
    """A row of the report: the container of a pod has a NIC near these NUMA nodes."""
    row = {"podUID": pod.uid, "container": "main", "resource": NIC}
    return row | {"numaNodes": near, "count": 1, "ids": ["nic0"]}


@pytest.fixture
async def node(world: RealWorld, operator: OperatorProcess) -> str:
    """A node with two NUMA nodes that reports devices; nothing is placed yet."""
    name = await plan(world, POLICY)
    await report(world, name)
    return name


async def seen_together(world: RealWorld, node: str, operator: OperatorProcess) -> PodEvent:
    """A pod with a NIC, whose sandbox is there, and one without that comes after it.

    The operator, which is down, has seen neither: it begins with both at the same time.
    """
    await operator.kill()
    pod = await world.add_pod(node, "near", device=NIC)
    ready = {"conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]}
    key = Key(pod.pod, pod.namespace)
    await world.admin.merge_patch(PODS, key, {"status": ready}, subresource="status")
    await world.add_pod(node, "other")
    return pod


async def notes(world: RealWorld, operator: OperatorProcess, pod: PodEvent) -> list[str]:
    """The notes of a pod's Events, once there are any."""
    await until(lambda: world.event_notes(pod), operator.log)
    return await world.event_notes(pod)


async def test_a_pod_is_placed_near_the_device_that_the_node_reports(
    world: RealWorld, operator: OperatorProcess, node: str
) -> None:
    pod = await seen_together(world, node, operator)
    await report(world, node, had_by(pod, "1"))
    await operator.start()
    await until(lambda: holds(world, node, {"other": "2-3", "near": "8-9"}), operator.log)
    assert await notes(world, operator, pod) == ["container main: CPUs 8-9 of NUMA nodes 1"]


async def test_without_a_report_it_waits_a_little_and_is_placed_without_and_told(
    world: RealWorld, operator: OperatorProcess, node: str
) -> None:
    """The pod that comes after it is placed first. Rows of pods that are not there change nothing,
    nor does what comes too late.
    """
    pod = await seen_together(world, node, operator)
    gone = {"podUID": "11111111-2222-3333-4444-555555555555"}
    await report(world, node, had_by(pod, "1") | gone)
    await operator.start()
    await until(lambda: holds(world, node, {"other": "2-3", "near": "4-5"}), operator.log)
    (note,) = await notes(world, operator, pod)
    assert note.endswith(
        f"; chosen without its devices: within 2 s its node has not reported which {NIC} it has"
    )
    await report(world, node, had_by(pod, "1"))
    await world.add_pod(node, "witness")
    expected = {"other": "2-3", "near": "4-5", "witness": "6-7"}
    await until(lambda: holds(world, node, expected), operator.log)


async def test_an_operator_that_is_killed_amid_the_wait(
    world: RealWorld, operator: OperatorProcess, node: str
) -> None:
    await seen_together(world, node, operator)
    await operator.start()
    await until(lambda: world.held(node), operator.log)
    await operator.kill()
    await operator.start()
    await until(lambda: holds(world, node, {"other": "2-3", "near": "4-5"}), operator.log)
