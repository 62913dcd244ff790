"""`numapin release` with a real API server: whoever of operator and enforcers is there."""

import asyncio
from contextlib import suppress

import pytest

from numapin_cli.main import main
from numapin_cli.node_modes import asking, pods, steps
from numapin_client.client import Source
from numapin_client.errors import AlreadyExistsError, NotFoundError
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_TOPOLOGIES,
    NODES,
    PODS,
    Json,
    Key,
    Resource,
)
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import plan
from support.real.operators.operator_world import RealWorld
from support.real.waiting import running

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
Capture = pytest.CaptureFixture[str]
POLICY = {"reserved": {"count": 2}, "releaseDelay": "0s"}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and wait a second for an operator that is not there."""
    for module in (asking, pods):
        monkeypatch.setattr(module, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(steps, "PATIENCE_SECONDS", 1.0)


async def release(world: RealWorld, *words: str) -> int:
    """Run the command with the rights of an administrator."""
    flags = ("--kubeconfig", str(world.plane.kubeconfig))
    return await asyncio.to_thread(main, ["release", *flags, *words])


async def enforced(world: RealWorld, *nodes: str) -> None:
    """Play enforcers that put in force whatever is written."""
    while True:
        for node in nodes:
            found = await world.assignment(node)
            status = found.get("status") or {}
            if found and status.get("observedGeneration") != found["metadata"]["generation"]:
                try:
                    await world.enforce(node)
                except (NotFoundError, KeyError):  # it is deleted at this moment
                    continue
        await asyncio.sleep(0.1)


async def mode_of(world: RealWorld, node: str) -> str | None:
    annotations: Json = (await world.admin.get(NODES, Key(node)))["metadata"].get("annotations", {})
    return annotations.get("numapin.io/node-mode")


async def two_nodes(world: RealWorld) -> tuple[str, str]:
    """Two nodes with CPU sets in force, whose operator is gone."""
    first, second = (await world.add_node()).name, (await world.add_node()).name
    for node in (first, second):
        spec = {"mode": "Static", "pools": {"reserved": "0-1", "shared": "0-7"}, "assigned": []}
        await world.admin.create(NODE_ASSIGNMENTS, {"metadata": {"name": node}, "spec": spec})
        await world.enforce(node)
    return first, second


async def test_the_operator_releases_and_the_command_waits(
    world: RealWorld, operator: OperatorProcess, capsys: Capture
) -> None:
    node = await plan(world, POLICY)
    async with running(enforced(world, node)):
        assert await release(world, "--node", node) == 0
    assert await world.assignment(node) == {}
    assert f"node/{node} released (1 of 1)" in capsys.readouterr().out
    assert await mode_of(world, node) == "Released"
    kubectl = world.plane.kubectl
    await asyncio.to_thread(kubectl, "annotate", "node", node, "numapin.io/node-mode-")
    await until(lambda: world.spec(node), operator.log)


async def test_without_an_operator_the_command_writes_the_same(world: RealWorld) -> None:
    nodes = await two_nodes(world)
    async with running(enforced(world, *nodes)):
        assert await release(world, "--node", nodes[0], "--node", nodes[1]) == 0
    for node in nodes:
        assert await world.assignment(node) == {}
        with pytest.raises(NotFoundError):
            await world.admin.get(NODE_TOPOLOGIES, Key(node))


async def test_a_dead_enforcer_stops_it_and_the_next_call_goes_on(
    world: RealWorld, capsys: Capture
) -> None:
    nodes = await two_nodes(world)
    words = ("--at-once", "1", "--timeout", "2s", "--node", nodes[0], "--node", nodes[1])
    assert await release(world, *words) == 3
    said = capsys.readouterr()
    assert f"node/{nodes[0]} not released: its enforcer does not answer" in said.out
    assert f"numapin release --node {nodes[0]} --pods" in said.out
    assert f"2 nodes left: {nodes[0]}, {nodes[1]}" in said.err
    assert await mode_of(world, nodes[1]) is None
    assert (await world.spec(nodes[1]))["mode"] == "Static"
    async with running(enforced(world, *nodes)):
        assert await release(world, *words) == 0


async def written_again(world: RealWorld, node: str) -> None:
    """Play an operator of an earlier release, for which a policy still selects the node."""
    while True:
        if (await world.spec(node)).get("mode") == "None":
            patch = {"spec": {"mode": "Static", "pools": {"reserved": "0-1", "shared": "0-7"}}}
            await world.admin.merge_patch(NODE_ASSIGNMENTS, Key(node), patch)
        await asyncio.sleep(0.05)


async def test_an_operator_that_does_not_know_the_annotation_is_not_fought_for_ever(
    world: RealWorld, capsys: Capture
) -> None:
    node, _ = await two_nodes(world)
    async with running(written_again(world, node)):
        assert await release(world, "--node", node) == 3
    assert "an operator of an earlier release does not know" in capsys.readouterr().out


async def kubelet(world: RealWorld, node: str, state: Json, phase: str) -> None:
    """Play a kubelet that runs the command's pod on a node."""
    while True:
        on_node = Source(PODS, "kube-system", field_selector=f"spec.nodeName={node}")
        for pod in (await world.admin.list_chunk(on_node)).items:
            status = {"phase": phase, "containerStatuses": [_ran(state)]}
            patch = {"status": status}
            await world.admin.merge_patch(PODS, Key.of(pod), patch, subresource="status")
            return
        await asyncio.sleep(0.1)


def _ran(state: Json) -> Json:
    image = {"image": "x", "imageID": "x", "restartCount": 0}
    return {"name": "release", "ready": False, "state": state, **image}


async def give_namespace_an_account(world: RealWorld) -> None:
    """What kube-controller-manager does, which does not run here."""
    body = {"metadata": {"name": "default", "namespace": "kube-system"}}
    with suppress(AlreadyExistsError):
        await world.admin.create(ACCOUNTS, body)


async def pods_on(world: RealWorld, node: str) -> list[Json]:
    """The pods of a node that are not being deleted."""
    on_node = Source(PODS, "kube-system", field_selector=f"spec.nodeName={node}")
    found = (await world.admin.list_chunk(on_node)).items
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


async def test_pods_release_where_no_enforcer_runs(world: RealWorld, capsys: Capture) -> None:
    node, _ = await two_nodes(world)
    await give_namespace_an_account(world)
    ended = {"terminated": {"exitCode": 0}}
    async with running(kubelet(world, node, ended, "Succeeded")):
        assert await release(world, "--node", node, "--pods", "--image", "x") == 0
    assert await pods_on(world, node) == []
    assert await mode_of(world, node) == "Released"
    with pytest.raises(NotFoundError):
        await world.admin.get(NODE_ASSIGNMENTS, Key(node))


async def test_a_pod_that_fails_leaves_the_assignment_and_says_why(
    world: RealWorld, capsys: Capture
) -> None:
    node, _ = await two_nodes(world)
    await give_namespace_an_account(world)
    why = "numapin-enforcer: nothing was released: an enforcer runs on this node"
    failed = {"terminated": {"exitCode": 1, "message": f"a line\n{why}\n"}}
    async with running(kubelet(world, node, failed, "Failed")):
        assert await release(world, "--node", node, "--pods", "--image", "x") == 3
    assert why in capsys.readouterr().out
    assert await pods_on(world, node) == []
    assert await world.assignment(node)


async def test_a_namespace_that_admits_no_such_pods_is_named(
    world: RealWorld, capsys: Capture
) -> None:
    kubectl = world.plane.kubectl
    namespace = world.name("strict")
    await asyncio.to_thread(kubectl, "create", "namespace", namespace)
    await asyncio.to_thread(kubectl, "create", "serviceaccount", "default", "-n", namespace)
    level = "pod-security.kubernetes.io/enforce=baseline"
    await asyncio.to_thread(kubectl, "label", "namespace", namespace, level)
    try:
        node, _ = await two_nodes(world)
        words = ("--node", node, "--pods", "--image", "x", "--namespace", namespace)
        assert await release(world, *words) == 3
        assert 'violates PodSecurity "baseline' in capsys.readouterr().out
    finally:
        await asyncio.to_thread(kubectl, "delete", "namespace", namespace, "--wait=false")
