"""A node whose pods are refused, with the evictor, against the fake API server."""

import asyncio
from typing import Any

from numapin_client.resources import Key
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.stores.versioned_cache import VersionedCache
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.values.operator import PLANNED, assignment_view, node_view, pod_view, policy_body

EVICT = {"onUnsatisfiable": "Evict"}


def refusal(pod: str, namespace: str = "default", reason: str = "NotEnoughCPUs") -> dict[str, str]:
    return {
        "podUID": f"uid-{pod}",
        "namespace": namespace,
        "pod": pod,
        "reason": reason,
        "message": "wanted 4 CPUs, 2 free",
    }


def placed(pod: str) -> dict[str, Any]:
    at = {"namespace": "default", "pod": pod, "container": "main", "cpus": "2-3", "mems": "0"}
    return at | {"podUID": f"uid-{pod}", "exclusive": True}


def assignment(
    *refused: dict[str, str], containers: Any = (), conditions: Any = ()
) -> AssignmentView:
    spec = PLANNED | {"refused": list(refused), "containers": list(containers)}
    return assignment_view(spec, {"conditions": list(conditions)})


class EvictionWorld:
    """A node whose pods are refused, and the evictor."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), ManualClock()
        self.state = ClusterState(lambda _, urgent=False: None)
        self.leading = asyncio.Event()
        self.leading.set()
        self.events = RefusalEvents(self.cluster, self.clock)
        self.evictor = Evictor(self.cluster, self.state, self.events, self.leading, self.clock)
        self.state.put_node(node_view())
        self.put_policy(EVICT)

    def put_policy(self, spec: dict[str, Any], version: int = 10, **others: Any) -> None:
        self.state.put_policy(policy_body("policy", spec, version=version, **others))

    def refuse(self, *pods: str, namespace: str = "default", **others: Any) -> None:
        """Have pods that exist, and that the newest spec refuses together with earlier ones."""
        for name in pods:
            self.cluster.pods[namespace, name] = f"uid-{name}"
            view = pod_view(name, namespace=namespace, **others)
            self.state.put_pod(Key(name, namespace), view)
        self.plan(*(refusal(pod.name, pod.namespace) for pod in self.state.pods_on("node-1")))

    def plan(self, *refused: dict[str, str], **others: Any) -> None:
        """Write a spec, and offer what it refuses, as the controller does."""
        self.state.assignments = VersionedCache()
        self.state.assignments.put(assignment(*refused, **others))
        self.evictor.offer("node-1")

    def left(self) -> list[str]:
        return [name for _, name in self.cluster.pods]
