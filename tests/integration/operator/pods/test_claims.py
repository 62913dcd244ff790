"""ResourceClaims on a real API server: which of them are for CPUs, and what the operator does."""

from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan
from support.real.operators.operator_world import RealWorld
from support.suite.left_out import since_kubernetes
from support.values.operator import enforcer_status

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
