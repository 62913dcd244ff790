"""A silent enforcer is marked Unknown; an API server that was away marks nobody.

All times are a tenth of the real ones: `support.real.operators.hasty_operator`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import Source, connect
from numapin_client.errors import ForbiddenError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import EVENTS, LEASES, Json, Key
from numapin_enforcer.status import node_lease
from numapin_enforcer.status.node_lease import NodeLease
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.processes.daemons import kill
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import plan
from support.real.operators.operator_world import RealWorld
from support.real.waiting import running

LEASE_SECONDS, RENEW_SECONDS = 5, 2.0
OUTAGE_SECONDS = 4.0 * LEASE_SECONDS


class Enforcer:
    """Plays the enforcer of a node: it renews its Lease with its own rights until it is killed."""

    def __init__(self, world: RealWorld, node: str) -> None:
        self.world, self.node, self.stack = world, node, AsyncExitStack()

    async def start(self) -> None:
        account = ServiceAccount(names.NAMESPACE, names.ENFORCER_SERVICE_ACCOUNT, self.node)
        folder = self.world.folder / f"lease-{self.node}"
        login = await asyncio.to_thread(log_in, self.world.plane, account, folder)
        self.api = await self.stack.enter_async_context(connect(kubeconfig_login(str(login))))
        assignment = await self.world.assignment(self.node)
        key = Key(self.node, names.NAMESPACE)
        lease = NodeLease(self.api, key, lambda: False, lambda: assignment)
        await self.stack.enter_async_context(running(lease.run()))

    async def kill(self) -> None:
        await self.stack.aclose()

    async def ready(self) -> tuple[str, str]:
        """Status and reason of the condition Ready."""
        status = (await self.world.assignment(self.node))["status"]
        one = next(one for one in status["conditions"] if one["type"] == "Ready")
        return one["status"], one["reason"]

    async def is_unknown(self) -> bool:
        return await self.ready() == ("Unknown", "EnforcerUnknown")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_lease, "LEASE_SECONDS", LEASE_SECONDS)
    monkeypatch.setattr(node_lease, "RENEW_SECONDS", RENEW_SECONDS)
    monkeypatch.setattr(node_lease, "RETRY_SECONDS", RENEW_SECONDS / 4)


@pytest.fixture
async def operator(breakable_world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    process = OperatorProcess(breakable_world.operator_kubeconfig, tmp_path, hasty=True)
    await process.start()
    yield process
    assert await process.stop() == 0, process.log.read_text()[-4000:]


@pytest.fixture
async def enforcers(
    breakable_world: RealWorld, operator: OperatorProcess
) -> AsyncIterator[list[Enforcer]]:
    """Three nodes with a policy in force, whose enforcers renew their Leases."""
    world = breakable_world
    first = await plan(world)
    nodes = [first, *[(await world.add_node()).name for _ in range(2)]]
    made = [Enforcer(world, node) for node in nodes]
    for one in made:
        await until(lambda one=one: world.spec(one.node), operator.log)  # type: ignore[misc]
        await world.enforce(one.node)
        await one.start()
    yield made
    for one in made:
        await one.kill()


async def notes(world: RealWorld, node: str) -> list[Json]:
    """The Events that say that a node's enforcer is silent."""
    source = Source(EVENTS, "default", field_selector="reason=EnforcerUnknown")
    found = (await world.admin.list_chunk(source, limit=0)).items
    return [one for one in found if one["regarding"]["name"] == node]


async def test_a_dead_enforcer_is_unknown_until_its_next_report(
    breakable_world: RealWorld, operator: OperatorProcess, enforcers: list[Enforcer]
) -> None:
    world, (dead, *others) = breakable_world, enforcers
    await asyncio.sleep(LEASE_SECONDS)
    before = (await world.assignment(dead.node))["status"]
    await dead.kill()
    await until(dead.is_unknown, operator.log)
    assert [await one.ready() for one in others] == [("True", "Enforced")] * 2
    after = (await world.assignment(dead.node))["status"]
    untouched = [key for key in before if key != "conditions"]
    assert {key: after[key] for key in untouched} == {key: before[key] for key in untouched}

    await dead.start()
    await world.enforce(dead.node)
    assert await dead.ready() == ("True", "Enforced")
    await asyncio.sleep(2 * LEASE_SECONDS)
    assert await dead.ready() == ("True", "Enforced")
    assert len(await notes(world, dead.node)) == 1


async def test_an_outage_and_a_restart_mark_nobody_but_who_does_not_come_back(
    breakable_world: RealWorld, operator: OperatorProcess, enforcers: list[Enforcer]
) -> None:
    world, (lost, *others) = breakable_world, enforcers
    await asyncio.sleep(LEASE_SECONDS)
    apiserver = world.plane.apiserver.pid()
    assert apiserver is not None
    kill(apiserver)
    await asyncio.sleep(OUTAGE_SECONDS)
    await asyncio.to_thread(world.plane.start)
    for _ in range(LEASE_SECONDS):
        await asyncio.sleep(1)
        assert [await one.ready() for one in enforcers] == [("True", "Enforced")] * 3
    await operator.stop()
    await asyncio.sleep(2 * LEASE_SECONDS)
    await lost.kill()
    await operator.start()
    await until(lost.is_unknown, operator.log)
    assert [await one.ready() for one in others] == [("True", "Enforced")] * 2


async def test_an_enforcer_writes_no_lease_but_its_own(
    breakable_world: RealWorld, enforcers: list[Enforcer]
) -> None:
    one, other = enforcers[:2]
    spec = {"spec": {"holderIdentity": "somebody"}}
    for key in (Key(other.node, names.NAMESPACE), Key(names.LEADER_LEASE, names.NAMESPACE)):
        body = {"metadata": {"name": key.name, "namespace": key.namespace}, **spec}
        with pytest.raises(ForbiddenError):
            await one.api.create(LEASES, body)
    with pytest.raises(ForbiddenError):
        await one.api.merge_patch(LEASES, Key(other.node, names.NAMESPACE), spec)
    with pytest.raises(ForbiddenError):
        await one.api.merge_patch(LEASES, Key(one.node, "default"), spec)
