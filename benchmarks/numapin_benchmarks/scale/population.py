"""The cluster before the operator starts: Nodes, Namespaces, and the pods bound to the nodes.

The objects have the size of real ones. They are written into etcd as JSON, while the API server is
down: 150,000 requests to it would take most of an hour on two CPUs. The API server reads JSON
from etcd as it reads its own protobuf, and sets defaults when it reads.
Source: apimachinery, `recognizer.NewDecoder`; both serializers are registered for storage.
"""

import base64
import http.client
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from numapin_api.hardware.compact import compact_topology
from numapin_benchmarks.api_cost.layouts.entries import two_sockets
from numapin_client.resources import Json
from numapin_lab.played.enforcers import node_name, pod_uid, uid_of
from numapin_lab.played.machines import captured, cpu_count

TRANSACTION = 100
"""Objects written together. Source: etcd's `--max-txn-ops` is 128."""

CONNECTIONS = 3
NAMESPACES = 40
CREATED = "2026-01-01T00:00:00Z"
EXCLUSIVE_CPUS = ("1", "2", "4")
IMAGES = 40


@dataclass(frozen=True)
class Size:
    """How large the cluster is.

    Attributes:
        nodes: how many nodes.
        pods: pods bound to each node at the start.
        exclusive: how many of these want exclusive CPUs.
    """

    nodes: int
    pods: int
    exclusive: int

    @property
    def names(self) -> list[str]:
        """The names of all nodes."""
        return [node_name(number) for number in range(self.nodes)]


USUAL_PODS = 110
"""On a node. Source: KubeletConfiguration, `maxPods`."""

ROOM_CPUS = 24
"""CPUs of a node for new pods, and reserved ones."""

USUAL_MACHINES = (128, 256, 384, 512, 768, 1024)
"""CPUs of machines for more containers than fit on the captured ones."""


def machines(size: Size) -> Sequence[Json]:
    """The machines of the nodes: captured ones, if the pods of every node fit on each."""
    needs = ROOM_CPUS + sum(int(_cpus_of(one)) for one in range(size.exclusive))
    if needs <= min(map(cpu_count, captured())):
        return captured()
    cpus = next(cpus for cpus in USUAL_MACHINES if cpus >= needs)
    return (compact_topology(two_sockets(cpus)),)


def _cpus_of(number: int) -> str:
    return EXCLUSIVE_CPUS[number % len(EXCLUSIVE_CPUS)]


def _managed(manager: str, fields: Iterable[str]) -> list[Json]:
    owned: Json = {f"f:{field}": {".": {}} for field in fields}
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": CREATED}
    return [entry | {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}}]


def node_body(number: int, cpus: int, pods: int) -> Json:
    """A Node as a kubelet registers it, with labels, conditions and images.

    `pods`: how many it takes. The operator gives nothing to a pod that its kubelet would refuse.
    """
    amounts = {"cpu": str(cpus), "memory": "263829152Ki", "pods": str(pods)}
    digest = "sha256:" + "0123456789abcdef" * 4
    images = [
        {"names": [f"registry.example.com/team/app-{one}@{digest}"], "sizeBytes": 104857600 + one}
        for one in range(IMAGES)
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    times = {"lastHeartbeatTime": CREATED, "lastTransitionTime": CREATED}
    labels = {f"example.com/label-{one:02d}": f"value-{number % 7}" for one in range(20)}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": node_name(number),
            "uid": uid_of(node_name(number)),
            "creationTimestamp": CREATED,
            "labels": labels | {"kubernetes.io/hostname": node_name(number)},
            "managedFields": _managed("kubelet", labels),
        },
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": f"example:///{number}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready | times],
            "images": images,
        },
    }


def pod_body(name: str, node: str, cpu: str = "") -> Json:
    """A pod as a Deployment makes it, bound to a node.

    `cpu` is a number of exclusive CPUs; if empty, the pod is Burstable and shares.
    """
    amounts = {"cpu": cpu or "250m", "memory": "128Mi"}
    resources = {"requests": amounts, "limits": amounts} if cpu else {"requests": amounts}
    variables = [{"name": f"SETTING_{one}", "value": "some value of it"} for one in range(12)]
    token = {
        "name": "token",
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": [{"key": "ca.crt", "path": "ca.crt"}],
                    }
                },
            ],
        },
    }
    container = {
        "name": "main",
        "image": "registry.example.com/team/app@sha256:" + "0123456789abcdef" * 4,
        "env": variables,
        "resources": resources,
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
        "imagePullPolicy": "IfNotPresent",
    }
    owner: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": f"team-{sum(name.encode()) % NAMESPACES}",
            "labels": {"app": "app", "pod-template-hash": "5f4d6c7b8"},
            "ownerReferences": [owner | {"uid": uid_of("app")}],
        },
        "spec": {
            "nodeName": node,
            "containers": [container],
            "volumes": [token],
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 0,
        },
    }


def running_pod(size: Size, node: str, number: int) -> Json:
    """Pod `number` of the start, as it is in etcd once its kubelet has started it."""
    cpu = _cpus_of(number) if number < size.exclusive else ""
    body = pod_body(f"{node}-{number}", node, cpu)
    body["metadata"] |= {
        "uid": pod_uid(node, number),
        "creationTimestamp": CREATED,
        "managedFields": _managed("kube-controller-manager", (f"c-{one}" for one in range(25))),
    }
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": one, "status": "True", "lastTransitionTime": CREATED} for one in kinds]
    status: Json = {"phase": "Running", "qosClass": "Guaranteed" if cpu else "Burstable"}
    status |= {"conditions": conditions, "startTime": CREATED, "podIP": "10.1.0.7"}
    return {"kind": "Pod", "apiVersion": "v1"} | body | {"status": status}


def objects(size: Size, hardware: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Each object of the start with its key in etcd."""
    for number in range(NAMESPACES):
        name = f"team-{number}"
        metadata = {"name": name, "uid": uid_of(name), "creationTimestamp": CREATED}
        body: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata}
        state = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        yield f"/registry/namespaces/{name}", body | state
    cpus = [cpu_count(one) for one in hardware]
    most = max(USUAL_PODS, 2 * size.pods)
    for number, node in enumerate(size.names):
        yield f"/registry/minions/{node}", node_body(number, cpus[number % len(cpus)], most)
        for one in range(size.pods):
            body = running_pod(size, node, one)
            metadata = body["metadata"]
            yield f"/registry/pods/{metadata['namespace']}/{metadata['name']}", body


def fill(etcd_port: int, size: Size, hardware: Sequence[Json]) -> int:
    """Write the cluster into etcd, a transaction at a time; the number of objects.

    Raises:
        OSError: etcd did not accept a transaction.
    """
    return put_all(etcd_port, objects(size, hardware))


def put_all(etcd_port: int, found: Iterator[tuple[str, Json]]) -> int:
    """Write objects with their keys into etcd; as `fill`."""
    written = 0
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        while some := list(islice(found, TRANSACTION * CONNECTIONS * 4)):
            parts = [some[at : at + TRANSACTION] for at in range(0, len(some), TRANSACTION)]
            list(pool.map(lambda part: _put(etcd_port, part), parts))
            written += len(some)
    return written


def _put(port: int, part: list[tuple[str, Json]]) -> None:
    puts = [
        {"requestPut": {"key": _coded(key.encode()), "value": _coded(json.dumps(body).encode())}}
        for key, body in part
    ]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise OSError(f"etcd answered {answer.status}: {text[:200]!r}")


def _coded(value: bytes) -> str:
    return base64.b64encode(value).decode()
