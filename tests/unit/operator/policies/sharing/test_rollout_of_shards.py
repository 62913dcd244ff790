"""Operators that share the nodes keep one limit together, and count all nodes in one status."""

import random
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.errors import ConnectionFailedError
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.shards.division import Portion
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.operator import condition, enforcer_status, node_view

NODES = tuple(f"node-{number}" for number in range(12))
STALLED = [condition("Ready", False), condition("Stalled", True, "KubeletStaticPolicy")]


class SharedCluster(FakeCluster):
    """Counts the nodes that change, and loses some answers to writes of a policy's status."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.random, self.loss = chance, 0.0
        self.changing: set[str] = set()
        self.exempt: set[str] = set()
        """Nodes whose enforcer refused what they had: they need no turn, and an operator that has
        not seen its newer answer may still think so."""
        self.most = 0

    async def replace_spec(
        self,
        before: AssignmentView,
        node: NodeView,
        spec: NodeAssignmentSpec,
        *,
        as_lines: bool = False,
    ) -> AssignmentView:
        written = self.assignments[node.name]["spec"].get("pools")
        if written and spec.pools and CpuSet.parse(written["reserved"]) != spec.pools.reserved:
            status = self.assignments[node.name].get("status", {})
            if any(one["type"] == "Stalled" for one in status.get("conditions", ())):
                self.exempt.add(node.name)
            else:
                self.changing.add(node.name)
            self.most = max(self.most, len(self.changing - self.exempt))
        return await super().replace_spec(before, node, spec, as_lines=as_lines)

    async def replace_policy_status(
        self, before: PolicyView, status: CpuPolicyStatus
    ) -> PolicyView:
        after = await super().replace_policy_status(before, status)
        if self.random.random() < self.loss:
            raise ConnectionFailedError("PUT", "the answer was lost")
        return after


class World:
    """Some operators, each with its shard, and one policy for all nodes."""

    def __init__(self, seed: int, shards: int, most: str) -> None:
        self.random = random.Random(seed)
        self.cluster = SharedCluster(self.random)
        self.shards = shards
        self.operators = [self.start(shard) for shard in range(shards)]
        self.bad: set[str] = set()
        self.rollout = {"rollout": {"maxConcurrent": most}, "releaseDelay": "1h"}
        self.edit(1)

    def start(self, shard: int) -> Operator:
        """The next holder of a shard: it knows nothing of an earlier term."""
        operator = Operator(self.cluster, Portion(shard, self.shards))
        for name in NODES:
            if operator.plans(name):
                operator.state.put_node(node_view(name))
        return operator

    def edit(self, count: int) -> None:
        self.cluster.put_policy("policy", {**self.rollout, "reserved": {"count": count}})

    def answer(self, name: str) -> None:
        assignment = self.cluster.assignments.get(name)
        if assignment is not None:
            generation = assignment["metadata"]["generation"]
            conditions = STALLED if name in self.bad else None
            self.cluster.put_status(name, enforcer_status(generation, conditions=conditions))
            self.cluster.changing.discard(name)

    async def work(self) -> None:
        """Each operator works for itself, in any order; some see the others' writes late."""
        for operator in self.random.sample(self.operators, self.shards):
            if self.random.random() < 0.8:
                operator.observe()
            await operator.work_until_idle()
            await operator.statuses.write({"policy"})
            await operator.work_until_idle()

    async def settle(self) -> None:
        self.cluster.loss = 0.0
        self.bad.clear()
        for _ in range(40):
            for name in NODES:
                self.answer(name)
            await self.work()

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.cluster.policies["policy"].get("status") or {}
        return status


@pytest.mark.parametrize(("shards", "most"), [(2, "1"), (3, "2"), (4, "25%"), (4, "5")])
@pytest.mark.parametrize("start", [0, 3])
async def test_the_limit_holds_over_all_shards(shards: int, most: str, start: int) -> None:
    """Edits, operators that are replaced, lost answers, late watches, nodes that stall."""
    limit = {"25%": 3}.get(most) or int(most)
    for seed in range(start, start + 3):
        world = World(seed, shards, most)
        await world.settle()
        assert world.status["nodesInForce"] == len(NODES)
        world.cluster.most, count = 0, 1
        for _ in range(20):
            event = world.random.choice(("edit", "answer", "answer", "replace", "loss", "stall"))
            match event:
                case "edit":
                    count += 1
                    world.edit(count % 5 + 1)
                case "answer":
                    for name in world.random.sample(NODES, 4):
                        world.answer(name)
                case "replace":
                    shard = world.random.randrange(shards)
                    world.operators[shard] = world.start(shard)
                case "loss":
                    world.cluster.loss = world.random.choice((0.0, 0.5))
                case _:
                    world.bad = set(world.random.sample(NODES, 1))
            await world.work()
            assert world.cluster.most <= limit, f"seed {seed}"
        await world.settle()
        assert world.cluster.most <= limit, f"seed {seed}"
        reserved = {one["spec"]["pools"]["reserved"] for one in world.cluster.assignments.values()}
        assert len(reserved) == 1, f"seed {seed}: all follow in the end"
        assert world.status["nodesInForce"] == len(NODES)
        assert sum(one["turns"] for one in world.status["shards"]) == 0


async def test_no_shard_begins_after_a_node_of_another_is_stalled() -> None:
    world = World(1, 3, "1")
    await world.settle()
    world.bad = set(NODES)
    world.edit(3)
    for _ in range(6):
        await world.work()
        for name in tuple(world.cluster.changing):
            world.answer(name)
    changed = [
        name
        for name, one in world.cluster.assignments.items()
        if one["spec"]["pools"]["reserved"] != "0"
    ]
    assert len(changed) == 1
    assert world.status["nodesStalled"] == 1
    assert [one["type"] for one in world.status["conditions"] if one["status"] == "True"] == [
        "Reconciling",
        "Stalled",
    ]


async def test_a_policy_is_not_ready_before_every_shard_has_reported() -> None:
    world = World(1, 2, "100%")
    first, second = world.operators
    for operator in (first, second, first, second):
        operator.observe()
        await operator.work_until_idle()
        for name in NODES:
            world.answer(name)
        operator.observe()
        await operator.work_until_idle()
    await first.statuses.write({"policy"})
    ready = next(one for one in world.status["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "False"
    assert "shards 1 of 2" in ready["message"]
    second.observe()
    await second.work_until_idle()
    await second.statuses.write({"policy"})
    assert world.status["nodesSelected"] == len(NODES)
    first.observe()
    await first.statuses.write({"policy"})
    assert "currentRevision" in world.status
