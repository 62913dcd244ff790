"""Ten nodes that one policy governs, and their operator."""

from collections.abc import Iterable
from typing import Any

from numapin_api.topology import Topology
from numapin_client.resources import Key
from numapin_operator.observe.revisions import Revision
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.operator import (
    condition,
    enforcer_status,
    node_view,
    pod_view,
)

NODES = tuple(f"node-{number:02}" for number in range(10))


BEFORE: dict[str, Any] = {"reserved": {"count": 2}, "releaseDelay": "0s"}


AFTER = BEFORE | {"reserved": {"count": 4}}


class World:
    """Ten nodes that one policy governs, and their operator."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.operator = self.started()

    def started(self) -> Operator:
        """An operator that knows nothing yet but the nodes."""
        operator = Operator(self.cluster)
        for name in NODES:
            operator.state.put_node(node_view(name))
        return operator

    async def settle(self) -> None:
        """Let the operator see everything and work until it is idle, and write the statuses."""
        for _ in range(3):
            self.operator.observe()
            await self.operator.work_until_idle()
            await self.operator.statuses.write(set(self.cluster.policies))

    async def answer(self, names: Iterable[str] = NODES, topology: Topology | None = None) -> None:
        """Have enforcers accept the newest specs."""
        for name in names:
            generation = self.cluster.assignments[name]["metadata"]["generation"]
            self.cluster.put_status(name, enforcer_status(generation, topology=topology))
        await self.settle()

    async def apply(self, name: str, spec: dict[str, Any]) -> None:
        self.cluster.put_policy(name, spec)
        await self.settle()

    async def stall(self, name: str) -> None:
        """Have an enforcer report that it cannot enforce its spec."""
        generation = self.cluster.assignments[name]["metadata"]["generation"]
        conditions = [condition("Ready", False), condition("Stalled", True, "KubeletStaticPolicy")]
        self.cluster.put_status(name, enforcer_status(generation, conditions=conditions))
        await self.settle()

    async def add_pod(self, name: str, node: str, cpu: str = "2") -> None:
        self.operator.state.put_pod(Key(name, "default"), pod_view(name, cpu, node=node))
        await self.settle()

    def reserved(self, node: str) -> str:
        found: str = self.cluster.assignments[node]["spec"]["pools"]["reserved"]
        return found

    def changed(self) -> set[str]:
        return {name for name in self.cluster.assignments if self.reserved(name) == "0-3"}

    def held(self, node: str) -> dict[str, str]:
        containers = self.cluster.assignments[node]["spec"]["containers"]
        return {one["pod"]: one["cpus"] for one in containers}

    def status(self, policy: str = "policy") -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.policies[policy]["status"]
        return found

    def rolled_out(self, policy: str = "policy") -> Revision:
        """The newest generation that has reached every node, as stored."""
        found = Revision.decode(self.cluster.revisions[self.status(policy)["currentRevision"]])
        assert found is not None
        return found

    def reason(self, kind: str, policy: str = "policy") -> str:
        (found,) = (one for one in self.status(policy)["conditions"] if one["type"] == kind)
        return str(found["reason"])


async def first_in_force() -> World:
    """A world in which the first generation of the policy is in force on all nodes."""
    made = World()
    await made.apply("policy", BEFORE)
    await made.answer()  # the hardware
    await made.answer()
    assert made.rolled_out().generation == 1
    return made
