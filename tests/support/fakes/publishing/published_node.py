"""One node whose NodeResourceTopology is published, against the fake API server."""

import asyncio
from dataclasses import replace
from typing import Any

from numapin_operator.noderesourcetopology.publisher import Publisher
from numapin_operator.observe.cache import ClusterState
from numapin_operator.shards.division import Portion
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.moves import container
from support.values.operator import PLANNED, REPORTED, assignment_view, node_view, policy_view

PUBLISH: dict[str, Any] = {
    "reserved": {"count": 2},
    "publish": {"nodeResourceTopology": "Zones"},
}


class Scene:
    """One node and its policy, which the test changes."""

    def __init__(self, portion: Portion | None = None) -> None:
        self.cluster, self.clock, self.state = FakeCluster(), ManualClock(), ClusterState()
        self.portion = portion
        self.publisher = self.another()
        self._version = 100
        self.govern(PUBLISH)
        self.state.put_node(node_view())
        self.assign()

    def another(self) -> Publisher:
        """One that remembers nothing, as after a restart."""
        governing = self.state.governing
        return Publisher(self.cluster, self.state, governing, self.clock, self.portion)

    def govern(self, spec: dict[str, Any]) -> None:
        self._version += 1
        generation = self._version
        view = policy_view("policy", spec, generation=generation, version=self._version)
        self.state.put_policy_view(view)
        self.publisher.tell("node-1")

    def assign(self, *pods: str, cpus: str = "2") -> None:
        self._version += 1
        spec = PLANNED | {"containers": [container(name, cpus) for name in pods]}
        self.state.assignments.put(replace(assignment_view(spec, REPORTED), version=self._version))
        self.publisher.tell("node-1")

    async def settle(self, seconds: float = 0.0) -> None:
        await self.clock.advance(seconds)
        await self.clock.run_tasks()

    @property
    def object(self) -> Any:
        return self.cluster.resource_topologies.get("node-1")

    def available(self) -> list[str]:
        return [zone["resources"][0]["available"] for zone in self.object["zones"]]


def working(scene: Scene) -> Any:
    return running(both(scene.publisher))


async def both(publisher: Publisher) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(publisher.sweep())
        for _ in range(4):
            tasks.create_task(publisher.work())


def edit(scene: Scene, writer: str, **metadata: Any) -> None:
    """Somebody else writes the zones of the object, or creates it."""
    before = scene.object or {"metadata": {"name": "node-1", "uid": "uid-theirs"}}
    managers = [{"manager": writer, "fieldsV1": {"f:zones": {}}}]
    changed = {"resourceVersion": scene.cluster._next(), "managedFields": managers} | metadata
    zones: dict[str, Any] = {"zones": []}
    body = before | zones | {"metadata": before["metadata"] | changed}
    scene.cluster.resource_topologies["node-1"] = body
