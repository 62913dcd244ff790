"""What a tenant does who may create, change and delete pods in a namespace."""

import random
from typing import Final

from numapin_campaigns.hostile.operations import Cast, Operation, author
from numapin_client.resources import PODS, Json, Key

NAMESPACE = "hostile"
MIRROR = "kubernetes.io/config.mirror"
AMOUNTS = (
    *("0", "1", "2", "3", "8", "64", "1000m", "1.0", "500m", "0.5", "1500m", "1e3", "1n", "1u"),
    *("9223372036854775807", "1E", "1e30", "0.000000001", "1Ki", "-1", "999999999999", "1e-3"),
)
MEMORY = ("64Mi", "1", "0", "1e3", "1Ei", "100Gi", "1m", "9223372036854775807", "0.5Gi", "1e18")
HUGE = ("2M", "2Mi", "1Gi", "1", "3Ki", "9999Ti", "2048Ki", "1e3", "0.5Mi")
JUNK = ("not a uid", "", "x" * 70, "../../etc", "\u202e\u0000x", "a" * 5000, "{}", "é", "\n")


def guaranteed(name: str, node: str, cpu: str, count: int = 1) -> Json:
    """A valid pod whose containers want exclusive CPUs."""
    amounts = {"cpu": cpu, "memory": "64Mi"}
    resources = {"requests": amounts, "limits": amounts}
    containers = [
        {"name": f"c{one}", "image": "none", "resources": resources} for one in range(count)
    ]
    spec = {"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _create(what: str, body: Json) -> list[Operation]:
    return [Operation(what, "create", PODS, Key.of(body), body)]


def valid(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A pod as everybody makes it."""
    node, cpu = rng.choice(cast.tenant), rng.choice("1234")
    return _create("valid pod", guaranteed(f"valid-{number}", node, cpu, rng.randint(1, 3)))


def amounts(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Odd quantities, of a container or of the whole pod; on any node, also in huge pages."""
    node = rng.choice([*cast.tenant, *cast.evil])
    body = guaranteed(f"amounts-{number}", node, "1", rng.randint(1, 4))
    for container in body["spec"]["containers"]:
        chosen: Json = {"cpu": rng.choice(AMOUNTS), "memory": rng.choice(MEMORY)}
        if rng.random() < 0.5:
            size = rng.choice(HUGE)
            chosen[f"hugepages-{size}"] = rng.choice(("0", "0", size, "2Mi", "1Gi", "6Mi"))
        requests = chosen if rng.random() < 0.8 else chosen | {"cpu": "1"}
        container["resources"] = {"limits": chosen, "requests": requests}
    if rng.random() < 0.3:
        whole = {"cpu": rng.choice(AMOUNTS), "memory": rng.choice(MEMORY)}
        body["spec"]["resources"] = {"limits": whole, "requests": whole}
    return _create("odd quantities", body)


def mirror(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A pod that claims to be a static pod's mirror, with a UID of its choice."""
    node = rng.choice([*cast.control, *cast.tenant])
    body = guaranteed(f"mirror-{number}", node, "1")
    if node in cast.control:  # where it must take no CPU that it is not entitled to
        body["spec"]["containers"][0]["resources"] = {}
    uids = [*JUNK, *cast.victims, *cast.pods.values(), *cast.node_uids.values()]
    body["metadata"]["annotations"] = {MIRROR: rng.choice(uids)}
    uid = cast.node_uids.get(node, "") if rng.random() < 0.5 else "someone-else"
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    if rng.random() < 0.6:
        body["metadata"]["ownerReferences"] = [owner]
    if rng.random() < 0.3:
        body["metadata"]["finalizers"] = ["example.com/forever"]
    return _create("mirror claim", body)


def crowd(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """One pod with very many containers."""
    count = rng.choice((257, 1000, 2500, 6000))
    node = rng.choice([*cast.control, *cast.tenant, *cast.evil])
    cpu = "1" if node in cast.evil else "1m"
    body = guaranteed(f"crowd-{number}", node, cpu, count)
    if rng.random() < 0.5:
        body["spec"]["initContainers"] = body["spec"]["containers"][1:1001]
        body["spec"]["containers"] = body["spec"]["containers"][:1]
        for container in body["spec"]["initContainers"]:
            if rng.random() < 0.5:
                container["restartPolicy"] = "Always"
    return _create("many containers", body)


def wordy(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Names, labels, annotations, finalizers and owners at the limits of the API."""
    node = rng.choice([*cast.tenant, *cast.evil])
    body = guaranteed(f"wordy-{number}", node, rng.choice("12"))
    metadata: Json = body["metadata"]
    if rng.random() < 0.5:
        metadata["name"] = (f"{number}." + "n" * 60 + ".") * 3 + "x" * rng.randint(1, 60)
    metadata["labels"] = {f"example.com/l{one}": "v" * 63 for one in range(rng.choice((1, 900)))}
    metadata["annotations"] = {"note": rng.choice(JUNK) * rng.choice((1, 40))}
    metadata["finalizers"] = [f"example.com/f{one}" for one in range(rng.choice((0, 3, 50)))]
    kind = rng.choice(("DaemonSet", "Node", "Job", "Whatever", "ReplicaSet"))
    owner = {"apiVersion": "x.example.com/v1", "kind": kind, "name": "o", "uid": rng.choice("abc")}
    metadata["ownerReferences"] = [owner | {"controller": rng.random() < 0.5}]
    return _create("odd metadata", body)


def flood(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """More pods at once than the node can place, so that many are refused."""
    node = rng.choice(cast.tenant)
    count, cpu = rng.randint(10, 40), rng.choice(("4", "40", "400"))
    names = (f"flood-{number}-{one}" for one in range(count))
    return [one for name in names for one in _create("flood", guaranteed(name, node, cpu, 2))]


def change(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Patches of a pod that exists: labels in a burst, a resize, its status, a finalizer."""
    key = cast.any_pod(rng)
    if key is None:
        return []
    phases = ("Running", "Failed", "Succeeded", "Pending", "Unknown")
    amount = {"cpu": rng.choice(AMOUNTS), "memory": "64Mi"}
    resize = {"name": "c0", "resources": {"limits": amount, "requests": amount}}
    ephemeral = {"name": f"e{number}", "image": "none"}
    statuses = [{"name": f"c{one}", "ready": True} for one in range(rng.choice((0, 2, 500)))]
    full = [
        one | {"image": "", "imageID": "", "restartCount": 2**31 - 1, "state": {"running": {}}}
        for one in statuses
    ]
    patches: list[tuple[str, Json, str]] = [
        *[("labels", {"metadata": {"labels": {"n": str(one)}}}, "") for one in range(8)],
        ("status", {"status": {"phase": rng.choice(phases), "containerStatuses": full}}, "status"),
        ("resize", {"spec": {"containers": [resize]}}, "resize"),
        ("ephemeral", {"spec": {"ephemeralContainers": [ephemeral]}}, "ephemeralcontainers"),
        ("finalizers", {"metadata": {"finalizers": None}}, ""),
        ("mirror", {"metadata": {"annotations": {MIRROR: rng.choice(JUNK)}}}, ""),
        ("owners", {"metadata": {"ownerReferences": None}}, ""),
    ]
    chosen = patches[:8] if rng.random() < 0.3 else [rng.choice(patches)]
    return [Operation(f"pod {what}", "patch", PODS, key, body, part) for what, body, part in chosen]


def delete(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A pod goes: at once, with its grace period, or held by a finalizer."""
    key = cast.any_pod(rng)
    if key is None:
        return []
    options: Json = {"gracePeriodSeconds": rng.choice((0, 0, 0, 1, 30))}
    return [Operation("delete pod", "delete", PODS, key, options)]


def elsewhere(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A pod on a node that does not exist, or bound by hand later."""
    body = guaranteed(f"elsewhere-{number}", f"no-such-node-{rng.randint(0, 5)}", "1")
    if rng.random() < 0.5:
        return _create("pod on a missing node", body)
    del body["spec"]["nodeName"]
    target = {"apiVersion": "v1", "kind": "Node", "name": rng.choice(cast.tenant)}
    binding: Json = {"apiVersion": "v1", "kind": "Binding", "metadata": body["metadata"]}
    key = Key.of(body)
    bind = Operation("bind", "create", PODS, key, binding | {"target": target}, "binding")
    return [*_create("pod without a node", body), bind]


TENANT: Final = author(
    (6, valid), (6, amounts), (4, mirror), (2, crowd), (4, wordy), (1, flood),
    (8, change), (12, delete), (2, elsewhere),
)  # fmt: skip
