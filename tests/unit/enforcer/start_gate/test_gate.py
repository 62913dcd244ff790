"""Which containers wait for their assignment, how long, and with what they are made."""

import asyncio
import errno
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets
from numapin_enforcer.start_gate.gate import Gate
from support.fakes.worlds.agent_world import World
from support.fakes.worlds.gated_world import (
    GATE,
    NEW,
    OWN,
    UID,
    ask,
    assign,
    container,
    line,
    pass_made,
)


async def test_an_assignment_that_is_there_is_answered_at_once(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, line(), shared="0-1")
    answer = await ask(world, gate, asked, container())
    assert answer.result() == OWN


async def test_a_container_waits_for_its_assignment(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(0.9)
    assert not answer.done()
    await assign(world, line(), shared="0-1")
    assert answer.result() == OWN


async def test_it_waits_no_longer_than_the_policy_says(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(0.99)
    assert not answer.done()
    await world.clock.advance(0.02)
    assert answer.result() is None


@pytest.mark.parametrize(("request_seconds", "most"), [(1.0, 0.5), (0.4, 0.2), (0.0, 1.0)])
async def test_it_answers_before_the_runtime_drops_it(
    world: World,
    gate: Gate,
    asked: list[asyncio.Task[Any]],
    request_seconds: float,
    most: float,
) -> None:
    gate.registered(RuntimeTimeouts("fake", "v1", request_seconds))
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(most - 0.01)
    assert not answer.done()
    await world.clock.advance(0.02)
    assert answer.result() is None


REFUSED = {"podUID": UID, "namespace": "d", "pod": "p", "reason": "NotEnoughCPUs", "message": "-"}


@pytest.mark.parametrize(
    "decided",
    [
        pytest.param({"refused": [REFUSED]}, id="refused"),
        pytest.param({"unassigned": [UID]}, id="not selected"),
    ],
)
async def test_a_pod_that_gets_nothing_stops_waiting(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]], decided: dict[str, Any]
) -> None:
    answer = await ask(world, gate, asked, container())
    assert not answer.done()
    await assign(world, **decided)
    assert answer.done()
    assert answer.result() is None
    assert not gate.is_in_vain


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(container(cpu_shares=512), id="half a CPU"),
        pytest.param(container(cgroup_parent=f"/kubepods/burstable/pod{UID}"), id="Burstable"),
        pytest.param(container(cgroup_parent="/elsewhere"), id="no pod of the kubelet"),
        pytest.param(container(pod_uid="../x"), id="no UID"),
        pytest.param(container(cpus="0"), id="another plug-in has set its CPUs"),
        pytest.param(container(mems="0"), id="another plug-in has set its NUMA nodes"),
    ],
)
async def test_what_gets_nothing_does_not_wait(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]], one: NriContainer
) -> None:
    answer = await ask(world, gate, asked, one)
    assert answer.done()
    assert answer.result() is None
    assert not gate.is_in_vain


async def test_only_selected_pods_wait(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, gate={**GATE, "podSelector": {"matchLabels": {"app": "x"}}})
    assert (await ask(world, gate, asked, container(labels={"app": "y"}))).done()
    demand = {"key": "app", "operator": "NotIn", "values": ["y"]}
    await assign(world, gate={**GATE, "podSelector": {"matchExpressions": [demand]}})
    assert (await ask(world, gate, asked, container(labels={"app": "y"}))).done()
    assert not (await ask(world, gate, asked, container(labels={"app": "x"}))).done()


async def test_containers_that_share_wait_where_memory_is_bound(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, gate={**GATE, "memory": True})
    answer = await ask(world, gate, asked, container(cpu_shares=512))
    assert not answer.done()
    await assign(world, line(cpus="", mems="1", exclusive=False))
    assert answer.result() == Sets(CpuSet(), MemSet.parse("1"))


async def test_another_container_of_an_assigned_pod_does_not_wait(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, line(), shared="0-1")
    answer = await ask(world, gate, asked, container("sidecar"))
    assert answer.done()
    assert answer.result() is None


async def test_cpus_of_a_claim_are_left_to_its_driver(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, line(claimed=True), shared="0-1")
    answer = await ask(world, gate, asked, container())
    assert answer.done()
    assert answer.result() is None


async def test_without_a_gate_nothing_waits(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, line(), shared="0-1", gate=None)
    answer = await ask(world, gate, asked, container())
    assert answer.done()
    assert answer.result() is None


async def test_no_cpu_is_given_that_another_still_has(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    other = "kubepods/podother"
    held = f"{other}/{'e' * 64}"
    world.model.make(other)
    world.model.make(held)
    world.model.enter(held)
    stuck = [other, held]

    def refuse(write: Write) -> None:
        if write.path in stuck:
            raise CgroupRefusedError(write.path, "cpuset.cpus", errno.EIO, "stuck")

    world.model.before_write = refuse
    await assign(world, line(), shared="0-1")
    answer = await ask(world, gate, asked, container())
    await world.clock.advance(0.5)
    assert not answer.done()
    stuck.clear()
    await pass_made(world)
    assert answer.result() == OWN


async def test_after_a_wait_in_vain_none_waits_until_the_operator_writes(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    first = await ask(world, gate, asked, container())
    await world.clock.advance(1.1)
    assert first.done()
    assert gate.is_in_vain
    world.followers.start_gates.plugin.about = RuntimeTimeouts("fake", "v1", 2.0)
    status = world.followers.start_gates.status(world.last)
    assert status is not None
    assert "until the operator writes" in (status.message or "")
    await pass_made(world)
    assert (await ask(world, gate, asked, container(id_="c" * 64))).done()
    await assign(world, line("other", "1"), shared="0,2")
    status = world.followers.start_gates.status(world.last)
    assert status is not None
    assert status.message is None
    assert not (await ask(world, gate, asked, container(id_="f" * 64))).done()


async def test_passes_go_on_while_a_container_waits(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await ask(world, gate, asked, container())
    before = len(world.passes)
    await pass_made(world)
    assert len(world.passes) > before


async def test_a_container_without_a_name_is_not_taken_for_a_sandbox(
    world: World, gate: Gate, asked: list[asyncio.Task[Any]]
) -> None:
    await assign(world, line())
    await ask(world, gate, asked, container(name=""))
    assert NEW not in world.names.known
