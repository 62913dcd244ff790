"""A node whose container runtime asks before it makes a container: an agent with a start gate."""

import asyncio
import copy
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets
from numapin_enforcer.start_gate.gate import SETTLE_SECONDS, Gate
from support.fakes.kernels.new_pods import NewPods
from support.fakes.worlds.agent_world import BODY, World

NEW, SANDBOX, UID = "b" * 64, "d" * 64, "00000000-1111-4111-8111-000000000002"
NEW_POD = f"kubepods/pod{UID}"
GATE = {"timeoutMilliseconds": 1000, "qosClasses": ["Guaranteed"]}
OWN = Sets(CpuSet.parse("2"), MemSet())


def container(name: str = "main", id_: str = NEW, **more: Any) -> NriContainer:
    """One of a Guaranteed pod that asks for one CPU."""
    given: dict[str, Any] = {"pod_uid": UID, "cgroup_parent": f"/{NEW_POD}", "cpu_shares": 1024}
    return NriContainer(id=id_, name=name, **(given | more))


def line(uid: str = UID, cpus: str = "2", **more: Any) -> dict[str, Any]:
    named = {"podUID": uid, "namespace": "d", "pod": uid[:5], "container": "main"}
    return {**named, "cpus": cpus, "exclusive": True, **more}


@asynccontextmanager
async def gated_world(folder: Path) -> AsyncIterator[World]:
    """An agent that runs, with a gate and a new pod that has its sandbox."""
    descriptor = os.eventfd(0)
    with NewPods() as new_pods:
        made = World(descriptor, folder, new_pods)
        for path in (NEW_POD, f"{NEW_POD}/{SANDBOX}"):
            made.model.make(path)
        made.names.known |= {SANDBOX: ""}
        works = (made.agent.run(), made.inputs.local_copy.run())
        tasks = [asyncio.create_task(work) for work in works]
        await assign(made)
        made.followers.start_gates.gate.registered(RuntimeTimeouts("fake", "v1", 2.0))
        yield made
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    os.close(descriptor)


async def assign(
    world: World,
    *lines: Mapping[str, Any],
    shared: str = "0-2",
    gate: Mapping[str, Any] | None = GATE,
    **more: Any,
) -> None:
    """The operator writes: the container that is there keeps CPU 3."""
    assert world.assignments.body is not None
    body: dict[str, Any] = copy.deepcopy(dict(BODY))
    body["metadata"]["generation"] = world.assignments.body["metadata"]["generation"] + 1
    spec = body["spec"]
    spec |= {"pools": {"reserved": "0", "shared": shared}, **more}
    spec["containers"] += lines
    spec |= {"startGate": gate} if gate else {}
    world.assignments.body = body
    await pass_made(world)


async def pass_made(world: World) -> None:
    world.wake.set()
    await world.clock.run_tasks()


async def ask(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]], one: NriContainer
) -> asyncio.Task[Sets | None]:
    """The runtime asks; the answer may be there already."""
    task = asyncio.create_task(gate.create(one))
    asked.append(task)
    await world.clock.run_tasks()
    return task


async def start(world: World, gate: Gate, cpus: str, one: NriContainer | None = None) -> None:
    """The runtime makes the cgroup with these CPUs, and asks before it starts the container."""
    one = one or container()
    path = f"{NEW_POD}/{one.id}"
    world.model.make(path)
    if cpus:
        world.model.write(Write(path, CpuSet.parse(cpus), Step.NARROW))
    task = asyncio.create_task(gate.start(one))
    await world.clock.run_tasks()
    await world.clock.advance(SETTLE_SECONDS + 0.1)
    assert task.done()
