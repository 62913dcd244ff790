"""The operator as a process on a real API server, with the rights that users give it."""

import asyncio
import io
import json
from contextlib import redirect_stdout
from random import Random

from numapin_cli.main import main
from numapin_client.resources import CPU_POLICIES, NODE_ASSIGNMENTS, Json, Key
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import has, holds, plan, says, until_gone
from support.real.operators.operator_world import RealWorld
from support.values.operator import condition, enforcer_status


async def foresee(world: RealWorld, node: str, edited: Json) -> Json:
    """What `numapin plan` says of an edit of the policy, from what kubectl shows of the cluster."""
    kubectl, dump, edit = world.plane.kubectl, world.folder / "now.yaml", world.folder / "edit.yaml"
    dump.write_text(
        kubectl(
            "get", "nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies", "-A", "-o", "yaml"
        )
    )
    metadata = {"name": world.name("policy")}
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "CpuPolicy", "metadata": metadata}
    edit.write_text(
        json.dumps(
            kind | {"spec": {"nodeSelector": {"mark": world.mark}, "releaseDelay": "0s"} | edited}
        )
    )
    asked = ["plan", f"--cluster={dump}", f"--filename={edit}", f"--node={node}", "--output=json"]
    with redirect_stdout(io.StringIO()) as said:
        assert main(asked) in (0, 1)
    (foreseen,) = json.loads(said.getvalue())["nodes"]
    return dict(foreseen)


async def test_a_policy_becomes_an_assignment(world: RealWorld, operator: OperatorProcess) -> None:
    node = await world.add_node()
    policy = await world.put_policy({"reserved": {"count": 2}}, "policy")
    await until(lambda: world.spec(node.name), operator.log)
    made = await world.assignment(node.name)
    assert "ownerReferences" not in made["metadata"], "the garbage collector would delete it"
    reference = made["spec"]["policy"]
    uid = json.loads(world.plane.kubectl("get", "cpupol", policy, "-o", "json"))["metadata"]["uid"]
    assert reference == {"name": policy, "generation": 1, "since": 1, "uid": uid}
    assert "pools" not in made["spec"], "nothing is planned on hardware that was not reported"
    await until(lambda: says(world, "Reconciling", "True", "WaitingForTopology"), operator.log)
    await world.enforce(node.name)
    await until(lambda: has(world, node.name, "pools"), operator.log)
    assert (await world.spec(node.name))["pools"] == {"reserved": "0-1", "shared": "0-7"}
    await until(lambda: says(world, "Reconciling", "True", "WaitingForEnforcer"), operator.log)
    await world.enforce(node.name)
    await until(lambda: says(world, "Ready", "True", "InForce"), operator.log)
    status = await world.policy_status(policy)
    assert (status["nodesSelected"], status["nodesInForce"]) == (1, 1)


async def test_a_bound_pod_gets_cpus_and_a_release_needs_both(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    pod = await world.add_pod(node, "a")
    await until(lambda: holds(world, node, {"a": "2-3"}), operator.log)
    await world.enforce(node, pod.uid)
    await world.delete_pod(pod)
    witness = await world.add_pod(node, "b")
    await until(lambda: holds(world, node, {"a": "2-3", "b": "4-5"}), operator.log)
    await world.enforce(node, witness.uid)
    await until(lambda: holds(world, node, {"b": "4-5"}), operator.log)
    assert (await world.spec(node))["pools"]["shared"] == "0-3,6-7"


async def test_a_refused_pod_gets_an_event_and_the_shared_pool(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    await world.add_pod(node, "a", "4")
    await until(lambda: holds(world, node, {"a": "2-5"}), operator.log)
    refused = await world.add_pod(node, "b", "4")
    await until(lambda: world.event_notes(refused), operator.log)
    (note,) = await world.event_notes(refused)
    assert "wanted 4 CPUs, 2 free: 6-7" in note
    assert note.endswith("it runs in the shared pool")
    spec = await world.spec(node)
    assert [(one["podUID"], one["reason"]) for one in spec["refused"]] == [
        (refused.uid, "NotEnoughCPUs")
    ]
    assert await world.held(node) == {"a": "2-5"}


async def test_of_two_policies_the_loser_says_so(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    winner = await world.put_policy({"priority": 1, "reserved": {"count": 4}}, "winner")

    async def governed_by(name: str) -> bool:
        return bool((await world.spec(node))["policy"]["name"] == name)

    await until(lambda: governed_by(winner), operator.log)
    assert (await world.spec(node))["pools"]["reserved"] == "0-3"
    await until(lambda: says(world, "Ready", "True", "Overruled"), operator.log)
    loser = await world.policy_status(world.name("policy"))
    assert loser["conflicts"] == [{"policy": winner, "nodes": 1, "examples": [node]}]
    await world.delete_policy(winner)
    await until(lambda: governed_by(world.name("policy")), operator.log)


async def test_a_policy_edit_that_conflicts_with_a_running_container(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    pod = await world.add_pod(node, "a")
    await until(lambda: holds(world, node, {"a": "2-3"}), operator.log)
    await world.enforce(node, pod.uid)
    edited = {"reserved": {"cpus": "0-3"}}
    foreseen = await foresee(world, node, edited)
    await world.put_policy(edited, "policy")

    async def follows() -> bool:
        status = await world.policy_status(world.name("policy"))
        return bool(status.get("observedGeneration") == 2)

    await until(follows, operator.log)
    assert await world.held(node) == {"a": "2-3"}, "Static never moves a running container"
    assert foreseen["spec"] == await world.spec(node), "as `numapin plan` said before the edit"
    assert foreseen["reason"] == "WaitingForContainers"
    await world.enforce(node, pod.uid)
    await until(lambda: says(world, "Reconciling", "True", "WaitingForContainers"), operator.log)
    await world.delete_pod(pod)
    await world.enforce(node)
    await until(lambda: holds(world, node, {}), operator.log)
    await world.enforce(node)
    await until(lambda: says(world, "Ready", "True", "InForce"), operator.log)
    assert (await world.spec(node))["pools"] == {"reserved": "0-3", "shared": "0-7"}


def random_policy(draw: Random) -> Json:
    """Fields that lead to other assignments."""
    spec: Json = {"reserved": draw.choice([{"count": 1}, {"count": 3}, {"cpus": "2-3"}])}
    chosen: Json = {
        "topology": {"policy": draw.choice(["BestEffort", "Restricted", "SingleNUMANode"])},
        "options": {draw.choice(["fullPCPUsOnly", "distributeCPUsAcrossCores"]): True},
        "memory": {"policy": draw.choice(["Static", "Preferred", "SingleNUMA"])},
        "pods": {"podSelector": {"matchLabels": {"team": "a"}}},
        "cpuQuota": "Keep",
        "mode": draw.choice(["Static", "Dynamic", "None"]),
    }
    return spec | {name: chosen[name] for name in draw.sample(sorted(chosen), draw.randrange(4))}


async def test_plan_foresees_random_edits_of_what_kubectl_shows(
    world: RealWorld, operator: OperatorProcess
) -> None:
    """The spec that `numapin plan` prints before an edit is what the operator writes."""
    node, draw = await plan(world), Random(1224)
    for number in range(12):
        placed = await world.add_pod(node, f"p{number}", draw.choice(["1", "2", "3", "500m"]))
        gone = draw.random() < 0.5
        edited = random_policy(draw)
        await settled(world, operator, node)
        await world.enforce(node, placed.uid)
        await settled(world, operator, node)
        foreseen = await foresee(world, node, edited)
        await world.put_policy(edited, "policy")
        await settled(world, operator, node)
        assert foreseen["spec"] == await world.spec(node), edited
        if gone:
            await world.delete_pod(placed)


async def settled(world: RealWorld, operator: OperatorProcess, node: str) -> None:
    """Wait until the operator has answered the policy, and writes nothing for half a second."""

    async def is_answered() -> bool:
        policy = await world.admin.get(CPU_POLICIES, Key(world.name("policy")))
        status = policy.get("status") or {}
        return bool(status.get("observedGeneration") == policy["metadata"]["generation"])

    await until(is_answered, operator.log)
    before: Json = {}
    while (now := await world.spec(node)) != before:
        before = now
        await asyncio.sleep(0.5)


async def test_what_the_enforcer_cannot_do_shows_on_the_policy(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    generation = (await world.assignment(node))["metadata"]["generation"]
    stuck = condition("Stalled", True, "KubeletStaticPolicy", "the kubelet pins too")
    await world.report(node, enforcer_status(generation, conditions=[stuck]))
    await until(lambda: says(world, "Stalled", "True", "NodesStalled"), operator.log)
    (stalled,) = (await world.policy_status(world.name("policy")))["stalled"]
    assert stalled == {
        "node": node,
        "reason": "KubeletStaticPolicy",
        "message": "the kubelet pins too",
    }


async def test_a_deleted_policy_restores_every_cpuset_before_the_assignment_is_deleted(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    pod = await world.add_pod(node, "a")
    await until(lambda: holds(world, node, {"a": "2-3"}), operator.log)
    await world.enforce(node, pod.uid)
    await world.delete_policy(world.name("policy"))

    async def released() -> bool:
        return bool((await world.spec(node))["mode"] == "None")

    await until(released, operator.log)
    assert (await world.spec(node))["containers"] == []
    await world.enforce(node, pod.uid)
    await until_gone(world, node, operator.log)


async def test_the_assignments_of_others_are_left_alone(
    world: RealWorld, operator: OperatorProcess
) -> None:
    """What users put on the object stays there when the operator writes."""
    node = await plan(world)
    patch = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "mine"}}}
    await world.admin.merge_patch(NODE_ASSIGNMENTS, Key(node), patch)
    await world.add_pod(node, "a")
    await until(lambda: holds(world, node, {"a": "2-3"}), operator.log)
    metadata = (await world.assignment(node))["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"team": "a"}, {"note": "mine"})


async def test_a_refused_pod_is_evicted_where_the_policy_says_so(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world, {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"})
    placed = await world.add_pod(node, "a", "4")
    await until(lambda: holds(world, node, {"a": "2-5"}), operator.log)
    async with world.component("eviction"):
        refused = await world.add_pod(node, "b", "4")
        await until(lambda: world.pod_is_deleted(refused), operator.log)
        await until(lambda: world.event_notes(refused), operator.log)
    assert (await world.event_notes(refused))[0].endswith("it is evicted")
    assert not await world.pod_is_deleted(placed)


async def test_without_the_right_to_evict_the_pod_says_what_to_apply(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world, {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"})
    refused = await world.add_pod(node, "a", "8")

    async def names_component() -> bool:
        return any("components/eviction" in note for note in await world.event_notes(refused))

    await until(names_component, operator.log)
    assert not await world.pod_is_deleted(refused)
