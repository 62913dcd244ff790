"""Running containers keep their CPUs while a real garbage collector and users delete objects."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import Source
from numapin_client.errors import NotFoundError
from numapin_client.resources import CONTROLLER_REVISIONS, NODE_ASSIGNMENTS, NODES, Key, Resource
from numapin_lab.components.build import provide
from numapin_lab.controlplane.controllers import Controller, controller_manager
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import kill
from numapin_lab.processes.ports import choose
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan
from support.real.operators.operator_world import RealWorld

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)


@pytest.fixture(scope="module")
def garbage_collector(breakable_plane: ControlPlane) -> Iterator[Controller]:
    """kube-controller-manager with the garbage collector alone."""
    found = provide(("kube-controller-manager",))
    programs = {**breakable_plane.programs, **{name: one.path for name, one in found.items()}}
    made = controller_manager(
        replace(breakable_plane, programs=programs), *choose(1), emulated=False
    )
    collector = replace(made, options=(*made.options, "--controllers=garbage-collector-controller"))
    collector.start()
    yield collector
    pid = collector.daemon.pid()
    assert pid is not None, "it has ended by itself"
    kill(pid)


@pytest.fixture
async def operator(breakable_world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    process = OperatorProcess(breakable_world.operator_kubeconfig, tmp_path)
    await process.start()
    yield process
    assert await process.stop() == 0, process.log.read_text()[-4000:]


async def two_of_three(world: RealWorld, operator: OperatorProcess) -> str:
    """A node on which `b` and `c` run; the CPUs that were first given away are free."""
    node = await plan(world)
    pods = {}
    for name, held in (("a", {"a": "2-3"}), ("b", {"a": "2-3", "b": "4-5"})):
        pods[name] = await world.add_pod(node, name)
        await until(lambda held=held: holds(world, node, held), operator.log)  # type: ignore[misc]
    await world.delete_pod(pods["a"])
    await until(lambda: holds(world, node, {"b": "4-5"}), operator.log)
    await world.enforce(node, pods["b"].uid)
    return node


async def test_a_deleted_assignment_is_made_again_as_it_was(
    breakable_world: RealWorld, operator: OperatorProcess
) -> None:
    world = breakable_world
    node = await two_of_three(world, operator)
    uid = (await world.assignment(node))["metadata"]["uid"]
    await world.admin.delete(NODE_ASSIGNMENTS, Key(node))

    async def again() -> bool:
        found = await world.assignment(node)
        return bool(found) and found["metadata"]["uid"] != uid

    await until(again, operator.log)
    assert await world.held(node) == {"b": "4-5"}


async def test_the_assignment_of_a_node_that_is_registered_again_is_no_garbage(
    breakable_world: RealWorld, operator: OperatorProcess, garbage_collector: Controller
) -> None:
    world = breakable_world
    node = await two_of_three(world, operator)
    uid = (await world.assignment(node))["metadata"]["uid"]
    owner = (await world.admin.get(NODES, Key(node)))["metadata"]
    reference = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": owner["uid"]}
    owned = Key(f"{node}-owned", "default")
    metadata = {"name": owned.name, "namespace": "default", "ownerReferences": [reference]}
    await world.admin.create(CONFIG_MAPS, {"metadata": metadata})
    await world.admin.delete(NODES, Key(node))

    async def collected() -> bool:
        try:
            await world.admin.get(CONFIG_MAPS, owned)
        except NotFoundError:
            return True
        return False

    await until(collected, garbage_collector.daemon.log)
    await world.add_node(node.removeprefix(f"{world.mark}-"))
    await world.add_pod(node, "d")
    await until(lambda: holds(world, node, {"b": "4-5", "d": "2-3"}), operator.log)
    assert (await world.assignment(node))["metadata"]["uid"] == uid


async def test_a_revision_goes_with_its_policy(
    breakable_world: RealWorld, operator: OperatorProcess, garbage_collector: Controller
) -> None:
    world, source = breakable_world, Source(CONTROLLER_REVISIONS, names.NAMESPACE)

    async def stored() -> list[str]:
        found = (await world.admin.list_chunk(source, limit=0)).items
        named = [one["metadata"]["name"] for one in found]
        return [name for name in named if name.startswith(world.mark)]

    for what in ("gone", "kept"):
        await world.put_policy({"nodeSelector": {"such": "none"}}, what)

    async def both() -> bool:
        return len(await stored()) == 2

    await until(both, operator.log)
    await world.delete_policy(world.name("gone"))

    async def collected() -> bool:
        found = await stored()
        return len(found) == 1 and found[0].startswith(world.name("kept"))

    await until(collected, garbage_collector.daemon.log)
