"""What is compared with: kinds of Kubernetes itself. Does no I/O."""

from functools import partial

from numapin_benchmarks.api_cost.layouts.entries import CREATED, Entry, placed, shared
from numapin_benchmarks.api_cost.layouts.whole import (
    JSON,
    MERGE_PATCH,
    NODE,
    Call,
    Json,
    Layout,
    Stored,
    Write,
    text,
)


def config_map(name: str) -> Layout:
    """A built-in kind with the same text, to see what the kind costs; a status it has not."""
    maps = "/api/v1/namespaces/default/configmaps"

    def content(count: int, step: int, metadata: Json) -> Json:
        data = {"containers": text(placed(count, step)), "shared": shared(count)}
        return {"metadata": {"name": NODE} | metadata, "data": data}

    def begin(count: int) -> list[Call]:
        return [Call("POST", maps, content(count, 0, {}))]

    def replace(count: int, step: int, stored: Stored) -> Call:
        version = stored[f"{maps}/{NODE}"]["metadata"]["resourceVersion"]
        return Call("PUT", f"{maps}/{NODE}", content(count, step, {"resourceVersion": version}))

    def report(step: int, _: Stored) -> Call:
        metadata = {"annotations": {"observed": f"{step}", "at": CREATED}}
        return Call("PATCH", f"{maps}/{NODE}", {"metadata": metadata}, MERGE_PATCH)

    def writes(count: int) -> list[Write]:
        return [
            Write("operator", "PUT", partial(replace, count)),
            Write("enforcer", "merge patch of an annotation", report),
        ]

    return Layout(
        name, (), begin, writes, ((maps, ""), (maps, f"fieldSelector=metadata.name={NODE}"))
    )


def node_pod(number: int) -> Json:
    """A pod as a Deployment makes it, bound to the node, with a container that shares."""
    variables = [{"name": f"SETTING_{one}", "value": "an ordinary value"} for one in range(15)]
    whole = {"cpu": "2", "memory": "1Gi"}
    small = {"cpu": "100m", "memory": "64Mi"}
    containers = [
        {
            "name": name,
            "image": "registry.example.com/team/image:v1",
            "env": variables[: 15 if name == "engine" else 5],
            "resources": {"requests": amounts, "limits": amounts},
        }
        for name, amounts in (("engine", whole), ("sidecar", small))
    ]
    labels = {"app": f"app-{number % 500}", "pod-template-hash": "5d59d67564"}
    spec = {"nodeName": NODE, "automountServiceAccountToken": False, "containers": containers}
    return {"metadata": {"name": f"pod-{number:06d}", "labels": labels}, "spec": spec}


BEGUN = "2026-01-01T02:00:00Z"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def create_pod(step: int, _: Stored) -> Call:
    """What every figure is compared with."""
    return Call("POST", PODS, node_pod(step))


def create_unbound_pod(step: int, _: Stored) -> Call:
    """A pod that a scheduler is to bind."""
    pod = node_pod(step)
    del pod["spec"]["nodeName"]
    pod["metadata"]["name"] = _unbound(step)
    return Call("POST", PODS, pod)


def bind_pod(step: int, _: Stored) -> Call:
    """What the scheduler writes of a pod, which `create_unbound_pod` of the same step has made."""
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": _unbound(step)}}
    return Call("POST", f"{PODS}/{_unbound(step)}/binding", binding | {"target": target})


def run_pod(step: int, _: Stored) -> Call:
    """What a kubelet writes of a pod that runs; it writes two or three times of each."""
    names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": one, "status": "True", "lastTransitionTime": BEGUN} for one in names]
    statuses = [
        {
            "name": name,
            "image": "registry.example.com/team/image:v1",
            "imageID": f"registry.example.com/team/image@sha256:{step:064x}",
            "containerID": f"containerd://{step:064x}",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": BEGUN}},
        }
        for name in ("engine", "sidecar")
    ]
    status = {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}
    patch = {"status": status | {"conditions": conditions, "containerStatuses": statuses}}
    return Call("PATCH", f"{PODS}/{_unbound(step)}/status", patch, STRATEGIC_MERGE_PATCH)


def _unbound(step: int) -> str:
    return f"unbound-{step:06d}"


def annotate_pod(step: int, _: Stored) -> Call:
    """The entry as an annotation of its pod, which `create_pod` of the same step has made."""
    annotations = {"numapin.io/assigned": Entry(step, 125).line(step)}
    patch = {"metadata": {"annotations": annotations}}
    return Call("PATCH", f"{PODS}/pod-{step:06d}", patch, MERGE_PATCH)


def create_event(step: int, _: Stored) -> Call:
    """The Event about a placed pod."""
    one = Entry(step, 125)
    regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": "default"}
    event = {
        "metadata": {"name": f"pod-{step:06d}.{step:016x}", "namespace": "default"},
        "regarding": regarding | {"name": f"pod-{step:06d}", "uid": one.uid},
        "type": "Normal",
        "reason": "CPUsAssigned",
        "action": "Place",
        "note": f"container engine: CPUs {one.cpus}, NUMA node {one.mems}",
        "eventTime": "2026-01-01T02:00:00.000000Z",
        "reportingController": "numapin.io/numapin-operator",
        "reportingInstance": "numapin-operator-5d59d67564-abcde",
    }
    return Call("POST", EVENTS, event)


def renew_lease(step: int, stored: Stored) -> Call:
    """A heartbeat as kubelets send it."""
    time = f"2026-01-01T02:{step // 60 % 60:02d}:{step % 60:02d}.000000Z"
    version = stored[f"{LEASES}/{NODE}"]["metadata"]["resourceVersion"]
    return Call(
        "PUT",
        f"{LEASES}/{NODE}",
        lease(time) | {"metadata": {"name": NODE, "resourceVersion": version}},
        JSON,
    )


def patch_lease(step: int, _: Stored) -> Call:
    """The same as a merge patch, which needs no version."""
    patch = {"spec": {"renewTime": f"2026-01-01T03:{step // 60 % 60:02d}:{step % 60:02d}.000000Z"}}
    return Call("PATCH", f"{LEASES}/{NODE}", patch, MERGE_PATCH)


def lease(time: str) -> Json:
    """The Lease of the node."""
    return {
        "metadata": {"name": NODE},
        "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": time},
    }
