"""Objects deleted while the API server lost its history are noticed."""

import asyncio
import json
import os
import shutil
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from numapin_client.resources import NODE_ASSIGNMENTS, Key, Resource
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import Daemon, kill
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_role import Role
from support.real.operators.operator_scenes import holds, plan
from support.real.operators.operator_world import RealWorld


@pytest.fixture
async def operator(breakable_world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    process = OperatorProcess(breakable_world.operator_kubeconfig, tmp_path, hasty=True)
    await process.start()
    yield process
    assert await process.stop() == 0, process.log.read_text()[-4000:]


def restart(plane: ControlPlane) -> None:
    """Restart the API server, which forgets its watches."""
    apiserver = plane.apiserver.pid()
    assert apiserver is not None
    kill(apiserver)
    plane.start()


@contextmanager
def paused(daemon: Daemon) -> Iterator[None]:
    """Stop a program for the moment: its files are then as after a kill."""
    pid = daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def forget_history(plane: ControlPlane) -> None:
    """Have etcd drop every old state: older watches are refused with 410."""
    revision = ask_etcd(plane, "range", {"key": "AA=="})["header"]["revision"]
    ask_etcd(plane, "compaction", {"revision": revision, "physical": True})


def ask_etcd(plane: ControlPlane, what: str, body: dict[str, object]) -> Any:
    """Send one request to etcd's JSON gateway."""
    url = f"http://127.0.0.1:{plane.ports.etcd}/v3/kv/{what}"
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@pytest.mark.parametrize("hidden", [(), ("cpupolicies",)], ids=["at once", "the policy late"])
async def test_a_deletion_while_history_was_lost_is_noticed(
    breakable_world: RealWorld, operator: OperatorProcess, hidden: tuple[str, ...]
) -> None:
    """kopf never reports it: its watch is refused with 410, and it lists what is left.

    What is watched on two connections is seen in either order. Until the operator sees that the
    policy is gone, it makes the assignment again, as after any deletion of it alone.
    """
    world, role = breakable_world, Role(breakable_world.plane)
    kept, bereft = (await world.add_node("kept")).name, (await world.add_node("bereft")).name
    await world.put_policy({"reserved": {"count": 2}}, "policy")
    for node in (kept, bereft):
        await until(lambda node=node: world.spec(node), operator.log)  # type: ignore[misc]
        await world.enforce(node)

    async def planned() -> bool:
        return all(["pools" in await world.spec(node) for node in (kept, bereft)])

    await until(planned, operator.log)
    os.kill(operator.pid, signal.SIGSTOP)
    try:
        restart(world.plane)  # nothing is on its way to the operator any more
        await world.delete_policy(world.name("policy"))
        await world.admin.delete(NODE_ASSIGNMENTS, Key(bereft))
        await role.cut(*hidden)
        await asyncio.to_thread(forget_history, world.plane)
        restart(world.plane)
    finally:
        os.kill(operator.pid, signal.SIGCONT)
    try:
        if hidden:
            await until(lambda: world.spec(bereft), operator.log)
    finally:
        await role.cut()

    async def released() -> bool:
        is_gone = await world.assignment(bereft) == {}
        return is_gone and (await world.spec(kept)).get("mode") == "None"

    await until(released, operator.log)
    await world.put_policy({"reserved": {"count": 4}}, "another")
    await until(lambda: world.spec(bereft), operator.log)


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)

LOST_WRITES = 300
"""More than an API server writes while it starts."""


async def back_up(world: RealWorld) -> None:
    """Copy etcd's data; then write so much that a restored API server is behind."""
    with paused(world.plane.etcd):
        data = world.plane.etcd.folder / "data"
        await asyncio.to_thread(shutil.copytree, data, world.folder / "backup")
    for _ in range(LOST_WRITES):
        metadata = {"generateName": "m-", "namespace": "default"}
        await world.admin.create(CONFIG_MAPS, {"metadata": metadata})


async def restore(world: RealWorld) -> None:
    """Have the API server say what it said at the time of the backup."""
    data = world.plane.etcd.folder / "data"
    await asyncio.to_thread(world.plane.stop)
    shutil.rmtree(data)
    shutil.copytree(world.folder / "backup", data)
    await asyncio.to_thread(world.plane.start)


async def test_a_container_placed_since_a_backup_keeps_its_cpus(
    breakable_world: RealWorld, operator: OperatorProcess
) -> None:
    """The assignment of then gives its CPUs to a pod that has ended, and is in the backup too.

    The operator is away for both pods: it learns at once that one has come and the other is gone.
    """
    world = breakable_world
    node = await plan(world)
    old = await world.add_pod(node, "old")
    await until(lambda: holds(world, node, {"old": "2-3"}), operator.log)
    await world.enforce(node)
    assert await operator.stop() == 0
    await world.add_pod(node, "new")
    await back_up(world)
    await world.delete_pod(old)
    await operator.start()
    await until(lambda: holds(world, node, {"new": "2-3"}), operator.log)
    await restore(world)
    await until(lambda: holds(world, node, {"new": "2-3", "old": "4-5"}), operator.log)


async def test_an_etcd_restored_from_a_backup_is_noticed(
    breakable_world: RealWorld, operator: OperatorProcess
) -> None:
    """Versions start again below those that were seen, and so do those of each later edit."""
    world = breakable_world
    node = (await world.add_node("node")).name
    await world.put_policy({"reserved": {"count": 2}}, "policy")
    await until(lambda: world.spec(node), operator.log)
    await world.enforce(node)

    async def reserves(cpus: str) -> bool:
        return bool(((await world.spec(node)).get("pools") or {}).get("reserved") == cpus)

    await until(lambda: reserves("0-1"), operator.log)
    await back_up(world)
    await world.put_policy({"reserved": {"count": 6}}, "policy")
    await until(lambda: reserves("0-5"), operator.log)
    await restore(world)
    await until(lambda: reserves("0-1"), operator.log)
    await world.put_policy({"reserved": {"count": 4}}, "policy")
    await until(lambda: reserves("0-3"), operator.log)
