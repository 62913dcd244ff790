"""An operator, its API server and its objects as kubectl shows them, to compare with a what-if."""

import asyncio
import json

from numapin_api.topology import Topology
from numapin_client.resources import Key
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.observe.records import NodeView
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.operator import Body, enforcer_status, flat_topology

NODES = ("node-1", "node-2")
NAMESPACES = {"fast": {"team": "a"}, "slow": {}}


def node_body(name: str, allocatable: str) -> Body:
    metadata = {"name": name, "uid": f"uid-{name}", "labels": {"pool": name}}
    status = {"capacity": {"cpu": "8"}, "allocatable": {"cpu": allocatable}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


class World:
    """An operator, its API server, and all of its objects as kubectl shows them.

    Every node is the same machine.
    """

    def __init__(self, topology: Topology | None = None) -> None:
        self.topology = topology or flat_topology()
        self.cluster = FakeCluster()
        self.operator = Operator(self.cluster)
        self.nodes = [node_body("node-1", "7500m"), node_body("node-2", "5")]
        for body in self.nodes:
            self.operator.state.put_node(NodeView.decode(body))
        for name, labels in NAMESPACES.items():
            self.operator.state.put_namespace(name, labels)
        self.pods: list[Body] = []
        self._gone: set[str] = set()

    def add_pods(self, bodies: list[Body]) -> None:
        for body in bodies:
            self.pods.append(body)
            if body["spec"]["nodeName"]:
                self.operator.state.put_pod(Key.of(body), parse_stored_pod(body))

    def change_pod(self, body: Body) -> None:
        """Put a pod in the place of one of the same name."""
        (before,) = (
            one for one in self.pods if one["metadata"]["name"] == body["metadata"]["name"]
        )
        self.pods.remove(before)
        self.add_pods([body])

    def drop_pod(self, name: str) -> None:
        """Delete a pod of namespace default, with all that runs of it."""
        (body,) = (one for one in self.pods if one["metadata"]["name"] == name)
        self.pods.remove(body)
        self.operator.state.drop_pod(Key.of(body), body["spec"]["nodeName"])
        self._gone.add(body["metadata"]["uid"])

    async def settle(self) -> None:
        """Write until nothing changes, and have every enforcer report each time."""
        for _ in range(3):
            self.operator.observe()
            await self.operator.work_until_idle()
            for name, body in self.cluster.assignments.items():
                entries = body["spec"].get("containers", ())
                status = enforcer_status(
                    body["metadata"]["generation"],
                    topology=self.topology,
                    running={one["podUID"] for one in entries} - self._gone,
                )
                self.cluster.put_status(name, status)
        self.operator.observe()
        await self.operator.work_until_idle()

    def dump(self) -> str:
        ours = {"apiVersion": "numapin.io/v1beta1"}
        spaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in NAMESPACES.items()
        ]
        items = [
            *self.nodes,
            *spaces,
            *self.pods,
            *(ours | {"kind": "NodeAssignment"} | one for one in self.cluster.assignments.values()),
            *(ours | {"kind": "CpuPolicy"} | one for one in self.cluster.policies.values()),
        ]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    def specs(self) -> dict[str, str]:
        return {name: json.dumps(one["spec"]) for name, one in self.cluster.assignments.items()}


def cluster(*pods: Body, spec: Body | None = None) -> World:
    """Two nodes with a policy in force, and pods on them; its operator has ended."""
    return asyncio.run(living_cluster(*pods, spec=spec))


async def living_cluster(
    *pods: Body, spec: Body | None = None, topology: Topology | None = None
) -> World:
    """The same, with an operator that goes on in this event loop."""
    world = World(topology)
    world.cluster.put_policy("web", {"reserved": {"count": 2}} if spec is None else spec)
    world.add_pods(list(pods))
    await world.settle()
    return world
