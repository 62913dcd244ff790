"""The fake passes the tests that the real API server passes."""

from itertools import count
from typing import Any

import pytest

from numapin_client.resources import Key
from numapin_operator.cluster import PodEvent
from numapin_operator.observe.records import NodeView
from support.fakes.cluster import FakeCluster
from support.fakes.cluster_contract import FOREIGN_OWNER, ClusterContract
from support.values.operator import node_view, pod_view


class FakeWorld:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self._names = (f"name-{number}" for number in count())

    async def add_node(self) -> NodeView:
        node = node_view(next(self._names))
        self.cluster.nodes[node.name] = node
        return node

    async def put_policy(self, spec: dict[str, Any]) -> str:
        name = next(self._names)
        self.cluster.put_policy(name, spec)
        return name

    async def report(self, node: str, status: dict[str, Any]) -> None:
        self.cluster.put_status(node, status)

    async def add_owner(self, node: str) -> None:
        metadata = self.cluster.assignments[node]["metadata"]
        metadata["ownerReferences"] = [FOREIGN_OWNER]

    async def add_pod(self, node: str) -> PodEvent:
        name = next(self._names)
        pod = pod_view(name, node=node)
        self.cluster.pods["default", name] = pod.uid
        self.cluster.pod_views[Key(name, "default")] = pod
        return PodEvent("default", name, pod.uid, "NotEnoughCPUs", "wanted 4, 2 free")

    async def block_evictions(self, pod: PodEvent) -> None:
        self.cluster.budget = 0

    async def pod_is_deleted(self, pod: PodEvent) -> bool:
        return (pod.namespace, pod.pod) not in self.cluster.pods

    async def event_notes(self, pod: PodEvent) -> list[str]:
        return [one.note for one in self.cluster.events if one.pod == pod.pod]


class TestFakeCluster(ClusterContract):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()
