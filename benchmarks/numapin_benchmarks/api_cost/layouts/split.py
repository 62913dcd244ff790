"""Layouts in which a node has several objects. Does no I/O."""

from functools import partial

from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.entries import Entry, conditions, placed
from numapin_benchmarks.api_cost.layouts.whole import (
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
    replace,
    settings,
    text,
)

POD_KIND, POD_PLURAL = "PodAssignment", "podassignments"
SHARD_KIND, SHARD_PLURAL = "AssignmentShard", "assignmentshards"
REST_KIND, REST_PLURAL = "NodeAssignmentRest", "nodeassignmentrests"
RECENT = 8
"""Containers in the small object on average, if the rest is written once in 16 times."""

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

    def patch(number: int, count: int, step: int, _: Stored) -> Call:
        _kind, path, content = contents[number]
        return Call("PATCH", f"{path}/{NODE}", content(count, step), MERGE_PATCH)

    def writes(count: int) -> list[Write]:
        return [
            Write("operator", "PUT of the assignment", partial(replace, 0, count)),
            Write("enforcer", "PUT of the report", partial(replace, 1, count)),
            Write("patched", "merge patch of the report", partial(patch, 1, count)),
        ]

    own = f"fieldSelector=metadata.name={NODE}"
    return Layout(
        name, definitions, begin, writes, ((paths[1], ""), (paths[0], ""), (paths[0], own))
    )


def recent(name: str) -> Layout:
    """The containers of the last writes beside the status, the rest in another object.

    The operator writes the small object; it writes the rest once in 2 * `RECENT` times,
    and the small one names the version that it builds on.
    """
    spec = kinds.header({"containers": kinds.lines(), "restVersion": kinds.LINE})
    definitions = (
        kinds.kind(name, "NodeAssignment", kinds.record(spec=spec, status=kinds.exceptions())),
        kinds.kind(name, REST_KIND, kinds.record(spec=kinds.record(containers=kinds.lines()))),
    )
    rest = collection(name, REST_PLURAL)

    def head_spec(count: int, step: int) -> Json:
        newest = list(placed(count, step))[-RECENT:]
        return settings(count) | {"containers": listed(newest), "restVersion": "7"}

    def rest_body(count: int, step: int, metadata: Json) -> Json:
        spec = {"containers": listed(placed(count, step))}
        return body(name, REST_KIND, {"name": NODE} | metadata, spec=spec)

    def begin(count: int) -> list[Call]:
        calls = created(name, head_spec(count, 0), changed_status(count, 0), managed=False)
        forget: Json = {"metadata": {"managedFields": [{}]}}
        calls.append(Call("POST", rest, rest_body(count, 0, {})))
        return [*calls, Call("PATCH", f"{rest}/{NODE}", forget, MERGE_PATCH)]

    def compact_rest(count: int, step: int, stored: Stored) -> Call:
        version = stored[f"{rest}/{NODE}"]["metadata"]["resourceVersion"]
        return Call("PUT", f"{rest}/{NODE}", rest_body(count, step, {"resourceVersion": version}))

    def writes(count: int) -> list[Write]:
        status, head = partial(changed_status, count), partial(head_spec, count)
        return [
            Write("operator", f"PUT of {RECENT} containers", partial(replace, name, head)),
            Write("enforcer", "merge patch of the status", partial(patch_status, name, status)),
            Write("seldom", "PUT of the rest", partial(compact_rest, count)),
        ]

    own = f"fieldSelector=metadata.name={NODE}"
    return Layout(name, definitions, begin, writes, ((rest, ""), (rest, own), *both(name)))


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
