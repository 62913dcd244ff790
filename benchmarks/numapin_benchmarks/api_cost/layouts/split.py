"""Layouts in which a node has several objects. Does no I/O."""

from functools import partial

from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.entries import CREATED, Entry, conditions, placed, shared
from numapin_benchmarks.api_cost.layouts.whole import (
    JSON,
    MERGE_PATCH,
    NODE,
    SHARD,
    Call,
    Json,
    Layout,
    Stored,
    Write,
    body,
    both,
    changed_status,
    collection,
    created,
    listed,
    patch_status,
    settings,
    text,
)

POD_KIND, POD_PLURAL = "PodAssignment", "podassignments"
SHARD_KIND, SHARD_PLURAL = "AssignmentShard", "assignmentshards"
REPORT_KIND, REPORT_PLURAL = "NodeReport", "nodereports"
NODE_LABEL = "numapin.io/node"


def pod_definition(layout: str) -> Json:
    """The definition of an object for each pod, which its node selects by label or by field."""
    names = dict.fromkeys(("nodeName", "namespace", "pod", "podUID"), kinds.LINE)
    fields = kinds.record(
        spec=kinds.record(**names, containers=kinds.lines(64)), status=kinds.exceptions()
    )
    return kinds.kind(layout, POD_KIND, fields, selectable=".spec.nodeName")


def pod_object(layout: str, one: Entry, node: str = NODE) -> Json:
    """The object of one pod."""
    metadata = {"name": one.uid, "labels": {NODE_LABEL: node}}
    names = {"nodeName": node, "namespace": one.namespace, "pod": one.pod, "podUID": one.uid}
    container = f"engine cpus={one.cpus} mems={one.mems} memory={one.mems}:1Gi"
    return body(layout, POD_KIND, metadata, spec=names | {"containers": [container]})


def for_each_pod(name: str, *, own_status: bool) -> Layout:
    """An object for each pod, and a small one for the node.

    The enforcer reports in the pod's object (`own_status`), or in the node's.
    """
    header = kinds.record(spec=kinds.header({}), status=kinds.exceptions())
    definitions = (kinds.kind(name, "NodeAssignment", header), pod_definition(name))
    pods = collection(name, POD_PLURAL)

    def begin(count: int) -> list[Call]:
        calls = created(name, settings(count), changed_status(count, 0))
        new = (pod_object(name, one) for one in placed(count, 0))
        return calls + [Call("POST", pods, one) for one in new]

    def create(count: int, step: int, _: Stored) -> Call:
        return Call("POST", pods, pod_object(name, Entry(step + count - 1, count)))

    def report(count: int, step: int, _: Stored) -> Call:
        new = Entry(step + count - 1, count)
        status = {"observedGeneration": 1, "conditions": conditions(1)}
        status |= {"exclusiveCPUs": new.cpus}
        return Call("PATCH", f"{pods}/{new.uid}/status", {"status": status}, MERGE_PATCH)

    def delete(count: int, step: int, _: Stored) -> Call:
        return Call("DELETE", f"{pods}/{Entry(step - 1, count).uid}", {})

    def writes(count: int) -> list[Write]:
        status = partial(patch_status, name, partial(changed_status, count))
        enforcer = (
            Write("enforcer", "merge patch of the pod's status", partial(report, count))
            if own_status
            else Write("enforcer", "merge patch of the node's status", status)
        )
        return [
            Write("operator", "POST of the pod's object", partial(create, count)),
            enforcer,
            Write("other", "DELETE of the pod's object", partial(delete, count)),
        ]

    selected = (pods, f"labelSelector={NODE_LABEL}={NODE}")
    return Layout(name, definitions, begin, writes, (*both(name), (pods, ""), selected))


def apart(name: str, *, managed: bool = True) -> Layout:
    """An object that the operator writes, with lines, and a small one that the enforcer writes."""
    spec = kinds.record(spec=kinds.header({"containers": kinds.lines()}))
    definitions = (
        kinds.kind(name, "NodeAssignment", spec),
        kinds.kind(name, REPORT_KIND, kinds.record(status=kinds.exceptions())),
    )
    paths = collection(name), collection(name, REPORT_PLURAL)

    def assigned(count: int, step: int) -> Json:
        return {"spec": settings(count) | {"containers": listed(placed(count, step))}}

    def reported(count: int, step: int) -> Json:
        return {"status": changed_status(count, step)}

    contents = (("NodeAssignment", paths[0], assigned), (REPORT_KIND, paths[1], reported))

    def begin(count: int) -> list[Call]:
        calls = []
        for kind, path, content in contents:
            new = body(name, kind, {"name": NODE}, **content(count, 0))
            calls.append(Call("POST", path, new))
            if not managed:
                forget: Json = {"metadata": {"managedFields": [{}]}}
                calls.append(Call("PATCH", f"{path}/{NODE}", forget, MERGE_PATCH))
        return calls

    def replace(number: int, count: int, step: int, stored: Stored) -> Call:
        kind, path, content = contents[number]
        old = stored[f"{path}/{NODE}"]["metadata"]
        metadata = {"name": NODE, "resourceVersion": old["resourceVersion"]}
        return Call("PUT", f"{path}/{NODE}", body(name, kind, metadata, **content(count, step)))

    def writes(count: int) -> list[Write]:
        return [
            Write("operator", "PUT of the assignment", partial(replace, 0, count)),
            Write("enforcer", "PUT of the report", partial(replace, 1, count)),
        ]

    own = f"fieldSelector=metadata.name={NODE}"
    return Layout(
        name, definitions, begin, writes, ((paths[1], ""), (paths[0], ""), (paths[0], own))
    )


def sharded(name: str) -> Layout:
    """A small object for the node, and one for every `SHARD` containers."""
    header = kinds.record(spec=kinds.header({}), status=kinds.exceptions())
    shard = kinds.record(spec=kinds.record(nodeName=kinds.LINE, containers=kinds.TEXT))
    definitions = (
        kinds.kind(name, "NodeAssignment", header),
        kinds.kind(name, SHARD_KIND, shard, selectable=".spec.nodeName"),
    )
    path = collection(name, SHARD_PLURAL)

    def shard_body(count: int, step: int, number: int, metadata: Json) -> Json:
        share = [one for one in placed(count, step) if one.number % count // SHARD == number]
        spec = {"nodeName": NODE, "containers": text(share)}
        labels = {"name": f"{NODE}-{number}", "labels": {NODE_LABEL: NODE}}
        return body(name, SHARD_KIND, labels | metadata, spec=spec)

    def begin(count: int) -> list[Call]:
        shards = range((count + SHARD - 1) // SHARD)
        new = (shard_body(count, 0, number, {}) for number in shards)
        calls = created(name, settings(count), changed_status(count, 0))
        return calls + [Call("POST", path, one) for one in new]

    def replace(count: int, step: int, stored: Stored) -> Call:
        number = (step - 1) % count // SHARD
        where = f"{path}/{NODE}-{number}"
        version = {"resourceVersion": stored[where]["metadata"]["resourceVersion"]}
        return Call("PUT", where, shard_body(count, step, number, version))

    def writes(count: int) -> list[Write]:
        status = partial(patch_status, name, partial(changed_status, count))
        return [
            Write("operator", f"PUT of {SHARD} containers", partial(replace, count)),
            Write("enforcer", "merge patch of the node's status", status),
        ]

    selected = (path, f"labelSelector={NODE_LABEL}={NODE}")
    return Layout(name, definitions, begin, writes, (*both(name), (path, ""), selected))


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


PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def create_pod(step: int, _: Stored) -> Call:
    """What every figure is compared with."""
    return Call("POST", PODS, node_pod(step))


def annotate_pod(step: int, _: Stored) -> Call:
    """The entry as an annotation of its pod, which `create_pod` of the same step has made."""
    annotations = {"numapin.io/assigned": Entry(step, 125).line(step)}
    patch = {"metadata": {"annotations": annotations}}
    return Call("PATCH", f"{PODS}/pod-{step:06d}", patch, MERGE_PATCH)


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


def lease(time: str) -> Json:
    """The Lease of the node."""
    return {
        "metadata": {"name": NODE},
        "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": time},
    }
