"""One builder for each small value in tests of the operator."""

from collections.abc import Iterable, Mapping
from typing import Any

from numapin_api.hardware.compact import compact_topology
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_client.events import Reporter
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.placement import PodView, SystemReservation, amounts
from numapin_operator.queues.workqueue import WorkQueue

Body = dict[str, Any]


def flat_topology(cpus: int = 8) -> Topology:
    """One socket, one NUMA node, two threads on each core: CPUs 0-1 are the first core."""
    return Topology(
        cpus=tuple(Cpu(cpu, cpu // 2 * 2, 0, 0, 0) for cpu in range(cpus)),
        numa_nodes=(NumaNode(0, 8 << 30),),
    )


def node_view(
    name: str = "node-1",
    labels: Mapping[str, str] | None = None,
    capacity: int = 8000,
    allocatable: int = 8000,
    kept_back: Mapping[str, int] | None = None,
) -> NodeView:
    """A Node; CPU in thousandths, and the bytes of memory that its kubelet keeps back."""
    system = SystemReservation(capacity - allocatable, amounts((kept_back or {}).items()))
    return NodeView(name, f"uid-{name}", labels or {}, system)


def policy_view(name: str = "policy", spec: Body | None = None, **others: Any) -> PolicyView:
    """A policy of `policy_body`, decoded."""
    return PolicyView.decode(policy_body(name, spec, **others))


def policy_body(
    name: str = "policy",
    spec: Body | None = None,
    *,
    generation: int = 1,
    created: str = "2026-01-01T00:00:00Z",
    version: int = 10,
    deleting: bool = False,
    status: Body | None = None,
) -> Body:
    """A CpuPolicy as the API server sends it."""
    metadata: Body = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "generation": generation,
        "creationTimestamp": created,
    }
    if deleting:
        metadata["deletionTimestamp"] = created
    return {"metadata": metadata, "spec": spec or {}, "status": status or {}}


def condition(kind: str, holds: bool = True, reason: str = "Enforced", message: str = "") -> Body:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def enforcer_status(
    observed: int,
    *,
    topology: Topology | None = None,
    running: Iterable[str] = (),
    conditions: Iterable[Body] | None = None,
    free_hugepages: Iterable[Body] = (),
) -> Body:
    """The status that an enforcer reports; by default everything is in force on 8 CPUs."""
    return {
        "observedGeneration": observed,
        "freeHugepages": list(free_hugepages),
        "topology": compact_topology(topology or flat_topology()),
        "running": sorted(running),
        "conditions": [condition("Ready")] if conditions is None else list(conditions),
    }


def assignment_view(
    spec: Body | None = None,
    status: Body | None = None,
    *,
    node: str = "node-1",
    generation: int = 1,
    owner: str | None = None,
    deleting: bool = False,
) -> AssignmentView:
    metadata: Body = {
        "name": node,
        "uid": f"uid-assignment-{node}",
        "resourceVersion": "20",
        "generation": generation,
        "ownerReferences": [{"kind": "Node", "name": node, "uid": owner or f"uid-{node}"}],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return AssignmentView.decode({"metadata": metadata, "spec": spec or {}, "status": status or {}})


def pod_body(
    name: str,
    cpu: str = "2",
    *,
    memory: str = "64Mi",
    node: str = "node-1",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    bound: str = "2026-01-01T00:00:00Z",
    owner: tuple[str, str] | None = None,
    priority: int | None = None,
) -> Body:
    """A Guaranteed pod with one container `main`, bound to a node; `owner` is a kind and a UID."""
    amount = {"cpu": cpu, "memory": memory}
    resources = {"requests": amount, "limits": amount}
    container = {"name": "main", "image": "busybox", "resources": resources}
    metadata: Body = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "labels": dict(labels or {}),
        "creationTimestamp": bound,
    }
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": "o", "uid": owner[1]}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    spec: Body = {"nodeName": node, "containers": [container]}
    if priority is not None:
        spec["priority"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def cpu_claiming_body(name: str, claim: str = "c", **others: Any) -> dict[str, Any]:
    """A Pod object whose container has all CPUs of a ResourceClaim."""
    made = pod_body(name, **others)
    made["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": claim}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
    return made


def pod_view(name: str, cpu: str = "2", **others: Any) -> PodView:
    return parse_pod(pod_body(name, cpu, **others))


REPORTER = Reporter("numapin.io/operator", "test")
POLICY = policy_view("policy", {"reserved": {"count": 2}})
EMPTY = {"policy": {"name": "policy", "generation": 1}, "mode": "Static"}
PLANNED = EMPTY | {"pools": {"reserved": "0-1", "shared": "0-7"}}
REPORTED = enforcer_status(1)


def picture(
    assignment: AssignmentView | None = None,
    *pods: PodView,
    policies: tuple[PolicyView, ...] = (POLICY,),
    node: NodeView | None = node_view(),  # noqa: B008
) -> NodePicture:
    """The picture of a node that POLICY selects."""
    return NodePicture("node-1", node, policies, assignment, pods)


def is_idle(queue: WorkQueue) -> bool:
    """Whether no key waits, is worked on or is delayed after a failure."""
    return not (queue._urgent or queue._others or queue._taken or queue._delayed)
