"""How the controller passes on pods that say what is not so, or that cannot be used."""

import asyncio

import pytest

from numapin_client.resources import Key
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.informers import decode_pod
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.values.operator import Body, enforcer_status, node_view, pod_body


class OneNode:
    """A controller for one node whose topology is known, under a policy that evicts."""

    def __init__(self) -> None:
        self.cluster, self.clock, self._queue = FakeCluster(), ManualClock(), WorkQueue()
        self.state = ClusterState(self._queue.add)
        self.leading = asyncio.Event()
        self.leading.set()
        self.events = RefusalEvents(self.cluster, self.clock)
        self.evictor = Evictor(self.cluster, self.state, self.events, self.leading, self.clock)
        statuses = StatusWriter(self.cluster, self.state, self.leading, self.clock)
        outputs = Outputs(statuses, self.events, self.evictor)
        self.controller = Controller(self.cluster, self.state, self._queue, outputs)

    async def plan(self, *pods: Body) -> Body:
        """Plan the node with these pods; returns the spec that was written."""
        fields = {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"}
        self.state.put_policy(self.cluster.put_policy("policy", fields))
        self.state.put_node(node_view())
        await self.controller.reconcile("node-1")
        reported = self.cluster.put_status("node-1", enforcer_status(1))
        self.state.put_assignment(AssignmentView.decode(reported))
        for body in pods:
            self.state.put_pod(Key(body["metadata"]["name"], "default"), decode_pod(body))
        await self.controller.reconcile("node-1")
        written: Body = self.cluster.assignments["node-1"]["spec"]
        return written


@pytest.fixture
def node() -> OneNode:
    return OneNode()


async def test_the_owner_of_an_invalid_pod_gets_the_reason_and_it_is_never_evicted(
    node: OneNode,
) -> None:
    body = pod_body("a") | {"status": {"qosClass": "Guaranteed"}}
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "two"
    spec = await node.plan(body)
    assert [one["reason"] for one in spec["refused"]] == ["InvalidPod"]
    [waiting] = node.events._refusals
    event = waiting.event
    assert (event.pod, event.reason) == ("a", "InvalidPod")
    assert "; it runs in the shared pool" in event.note
    assert node.evictor._queue == {}


async def test_a_mirror_pod_counts_under_the_uid_of_its_static_pod(node: OneNode) -> None:
    """Its proof is the UID of the Node, which the parser of pods does not know."""
    body = pod_body("etcd-node-1")
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "static-uid"}
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "uid-node-1"}
    ]
    spec = await node.plan(body)
    assert [one["podUID"] for one in spec["containers"]] == ["static-uid"]
