"""Three operators as processes share the nodes of a real API server in four shards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.errors import NotFoundError
from numapin_client.resources import LEASES, Json, Key
from numapin_operator.shards.division import lease_name, shard_of
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import COMPONENTS, RealWorld

SHARDS = 4
NODES = 16


class Fleet:
    """Some operators with shards, and what their Leases say."""

    def __init__(self, world: RealWorld, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.operators: list[OperatorProcess] = []

    async def add(self, shards: int = SHARDS) -> OperatorProcess:
        folder = self.folder / f"operator-{len(self.operators)}"
        folder.mkdir()
        operator = OperatorProcess(self.world.operator_kubeconfig, folder, hasty=True)
        self.operators.append(operator)
        await operator.start("--leader-elect", f"--shards={shards}")
        return operator

    async def leases(self) -> dict[int, Json]:
        found = {}
        for shard in range(SHARDS):
            try:
                key = Key(lease_name(shard), names.NAMESPACE)
                found[shard] = await self.world.admin.get(LEASES, key)
            except NotFoundError:
                continue
        return found

    async def holders(self) -> dict[int, str]:
        leases = await self.leases()
        return {shard: one["spec"]["holderIdentity"] for shard, one in leases.items()}

    async def is_shared_by(self, operators: int) -> bool:
        holders = await self.holders()
        return len(holders) == SHARDS and len(set(holders.values()) - {""}) == operators

    def log(self) -> Path:
        """What all of them have said, in one file."""
        said = "\n".join(f"--- {one.log}\n{one.log.read_text()[-3000:]}" for one in self.operators)
        (self.folder / "all.log").write_text(said)
        return self.folder / "all.log"


@asynccontextmanager
async def fleet_on(world: RealWorld, folder: Path) -> AsyncIterator[Fleet]:
    rights = COMPONENTS / "shards" / "rbac.yaml"
    await asyncio.to_thread(world.plane.kubectl, "apply", f"--filename={rights}")
    fleet = Fleet(world, folder)
    try:
        yield fleet
    finally:
        for one in fleet.operators:
            await one.kill()
        await asyncio.to_thread(world.plane.kubectl, "delete", f"--filename={rights}")
        for shard in await fleet.leases():
            await world.admin.delete(LEASES, Key(lease_name(shard), names.NAMESPACE))


@pytest.fixture
async def fleet(world: RealWorld, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with fleet_on(world, tmp_path) as made:
        yield made


async def answer_all(world: RealWorld, nodes: list[str], fleet: Fleet) -> None:
    """Play the enforcers until the operators write nothing more."""

    async def is_settled(node: str) -> bool:
        assignment = await world.assignment(node)
        if not assignment.get("spec"):
            return False
        observed = (assignment.get("status") or {}).get("observedGeneration")
        if "pools" in assignment["spec"] and observed == assignment["metadata"]["generation"]:
            return True
        await world.enforce(node)
        return False

    for node in nodes:
        await until(partial(is_settled, node), fleet.log())


async def test_a_killed_operator_loses_its_shards_and_no_other_node_is_written(
    world: RealWorld, fleet: Fleet
) -> None:
    for _ in range(3):
        await fleet.add()
    await until(lambda: fleet.is_shared_by(3), fleet.log())
    policy = await world.put_policy({"reserved": {"count": 2}}, "policy")
    nodes = [(await world.add_node(f"node-{number}")).name for number in range(NODES)]
    await answer_all(world, nodes, fleet)

    async def counted() -> bool:
        status = await world.policy_status(policy)
        return (status["nodesSelected"], status["nodesInForce"]) == (NODES, NODES)

    await until(counted, fleet.log())
    before, holders = [await world.assignment(one) for one in nodes], await fleet.holders()

    killed = fleet.operators[0]
    await killed.kill()
    await until(lambda: fleet.is_shared_by(2), fleet.log())
    after = await fleet.holders()
    moved = {shard for shard in holders if holders[shard] != after[shard]}
    assert len({holders[shard] for shard in moved}) == 1, "only the dead one's shards move"

    node = next(one for one in nodes if shard_of(one, SHARDS) in moved)
    await world.add_pod(node, "pod")
    await until(lambda: world.held(node), fleet.log())
    for old in before:
        name = old["metadata"]["name"]
        if name != node:
            new = await world.assignment(name)
            assert new["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]
    await until(counted, fleet.log())


async def test_a_rollout_over_all_shards_keeps_its_limit(world: RealWorld, fleet: Fleet) -> None:
    """No more than two of all nodes change at the same time, in whichever shards they are."""
    for _ in range(2):
        await fleet.add()
    await until(lambda: fleet.is_shared_by(2), fleet.log())
    pace = {"rollout": {"maxConcurrent": "2"}}
    policy = await world.put_policy({"reserved": {"count": 1}, **pace}, "policy")
    nodes = [(await world.add_node(f"node-{number}")).name for number in range(8)]
    assert len({shard_of(one, SHARDS) for one in nodes}) > 2, "they are in several shards"
    await answer_all(world, nodes, fleet)

    async def in_force() -> bool:
        status = await world.policy_status(policy)
        return status["nodesInForce"] == len(nodes) and "currentRevision" in status

    await until(in_force, fleet.log())
    await world.put_policy({"reserved": {"count": 2}, **pace}, "policy")
    most, answered = 0, set[str]()
    while len(answered) < len(nodes):
        changing = []
        for node in nodes:
            assignment = await world.assignment(node)
            observed = assignment["status"]["observedGeneration"]
            if observed != assignment["metadata"]["generation"]:
                changing.append(node)
        most = max(most, len(changing))
        if len(changing) == 2 or len(answered) + len(changing) == len(nodes):
            await world.enforce(changing[0])
            answered.add(changing[0])
        await asyncio.sleep(0.1)
    assert most == 2
    await until(in_force, fleet.log())


async def test_another_number_of_shards_waits_for_the_one_before(
    world: RealWorld, fleet: Fleet
) -> None:
    """From one operator without shards to four shards, to two, and back."""
    await world.put_policy({"reserved": {"count": 2}}, "policy")
    for step, shards in enumerate((1, SHARDS, 2, 1)):
        for one in fleet.operators:
            await one.stop()
        await fleet.add(shards)
        node = (await world.add_node(f"step-{step}")).name
        await until(partial(world.spec, node), fleet.log())
    held = (await fleet.holders())[0]
    assert "/" not in held
    assert "numapin.io/shards" not in (await fleet.leases())[0]["metadata"].get("annotations", {})
