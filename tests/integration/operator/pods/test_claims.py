"""ResourceClaims on a real API server: which of them are for CPUs, and what the operator does."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.topology import PciRoot
from numapin_client.resources import Json
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan
from support.real.operators.operator_world import RealWorld
from support.suite.left_out import since_kubernetes
from support.values.operator import enforcer_status
from support.values.placement import machine

NUMA, ROOT = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"
NEAR_BOTH = {"reserved": {"count": 2}, "topology": {"policy": "SingleNUMANode"}}

pytestmark = since_kubernetes("1.34")  # resource.k8s.io/v1


async def report_claim(world: RealWorld, node: str, uid: str, cpus: str) -> None:
    """Report all in force, and that the DRA driver has given CPUs to a claim."""
    generation = (await world.assignment(node))["metadata"]["generation"]
    claims = [{"claimUID": uid, "cpus": cpus}]
    await world.report(node, enforcer_status(generation) | {"claims": claims})


async def test_a_container_whose_claim_is_for_cpus_is_left_to_the_driver(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    claim, gpu = await world.add_claim("cpus"), await world.add_claim("gpu", "gpu.example")
    uid = await world.allocate(claim)
    await world.allocate(gpu, "gpu.example")
    pod = await world.add_pod(node, "claiming", claim=claim.name)
    await world.add_pod(node, "with-gpu", claim=gpu.name)
    await until(lambda: holds(world, node, {"with-gpu": "2-3"}), operator.log)
    await report_claim(world, node, uid, "6-7")
    await until(lambda: holds(world, node, {"claiming": "6-7", "with-gpu": "2-3"}), operator.log)
    spec = await world.spec(node)
    assert [one["pod"] for one in spec["containers"] if one.get("claimed")] == [pod.pod]
    assert spec["pools"]["shared"] == "0-1,4-5"


async def test_a_pod_waits_for_the_allocation_of_its_claim_and_others_do_not(
    world: RealWorld, operator: OperatorProcess
) -> None:
    """It names its node itself, so that no scheduler has allocated anything."""
    node = await plan(world)
    claim = await world.add_claim("late", "gpu.example")
    await world.add_pod(node, "waits", claim=claim.name)
    await world.add_pod(node, "other")
    await until(lambda: holds(world, node, {"other": "2-3"}), operator.log)
    await world.allocate(claim, "gpu.example")
    await until(lambda: holds(world, node, {"other": "2-3", "waits": "4-5"}), operator.log)


@pytest.mark.parametrize(
    ("slices", "cpus"),
    [
        pytest.param([("node", {}, {NUMA: {"int": 1}})], "8-9", id="of its node"),
        pytest.param(
            [("other", {}, {NUMA: {"int": 1}}), ("node", {}, {NUMA: {"int": 0}})],
            "2-3",
            id="not that of another node",
        ),
        pytest.param(
            [
                ("node", {"generation": 3}, {NUMA: {"int": 1}}),
                ("node", {"generation": 2}, {NUMA: {"int": 0}}),
            ],
            "8-9",
            id="the newest generation",
        ),
        pytest.param([("", {}, {NUMA: {"int": 1}})], "8-9", id="of no node"),
        pytest.param([("node", {}, {ROOT: {"string": "pci0000:3a"}})], "8-9", id="its root"),
        pytest.param([("node", {}, {ROOT: {"string": "pci0000:5d"}})], "2-3", id="no such root"),
    ],
)
async def test_a_pod_is_placed_near_the_device_of_its_claim(
    world: RealWorld,
    operator: OperatorProcess,
    slices: list[tuple[str, Json, Json]],
    cpus: str,
) -> None:
    node = (await world.add_node()).name
    other = (await world.add_node("other")).name
    await world.put_policy(NEAR_BOTH, "policy")
    await until(lambda: world.spec(node), operator.log)
    roots = (PciRoot("pci0000:00", MemSet((0,))), PciRoot("pci0000:3a", MemSet((1,))))
    await world.enforce(node, topology=replace(machine(16, numa_nodes=2), pci_roots=roots))
    for where, pool, attributes in slices:
        await world.publish({"node": node, "other": other, "": ""}[where], pool, attributes)
    claim = await world.add_claim("gpu", "gpu.example")
    await world.allocate(claim, "gpu.example")
    await world.add_pod(node, "near", claim=claim.name)
    await until(lambda: holds(world, node, {"near": cpus}), operator.log)
