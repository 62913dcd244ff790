"""What is written for a placed pod in each layout of a node's assignment. Does no I/O.

The operator's write comes after the pod is bound, the enforcer's once the kernel has its CPUs.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.entries import (
    Entry,
    conditions,
    hardware,
    placed,
    reserved,
    shared,
)

Json = dict[str, Any]
Stored = Mapping[str, Json]
"""The newest answers of the API server by path."""

NODE: Final = "node-00001"
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
SHARD: Final = 32
"""Containers in one object, where a node has several."""


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    body: Any
    content: str = JSON
    accept: str = JSON


@dataclass(frozen=True)
class Write:
    """A request that is made again and again, with other contents.

    Attributes:
        who: `operator` and `enforcer` are the writes of a placed pod; `other` is beside them.
        what: what is written, and how.
        call: the request of a step, beside what the API server has.
    """

    who: str
    what: str
    call: Callable[[int, Stored], Call]


@dataclass(frozen=True)
class Layout:
    """A layout.

    Attributes:
        name: also that of its API group.
        kinds: the CustomResourceDefinitions.
        begin: the requests that create a node with so many containers.
        writes: the writes on that node.
        watched: the collections that operator and enforcer watch, with their selectors.
    """

    name: str
    kinds: tuple[Json, ...]
    begin: Callable[[int], list[Call]]
    writes: Callable[[int], list[Write]]
    watched: tuple[tuple[str, str], ...] = field(default=())


def collection(layout: str, plural: str = "nodeassignments") -> str:
    """The path of the objects of a kind."""
    return f"/apis/{kinds.group(layout)}/{kinds.VERSION}/{plural}"


def one_object(layout: str) -> str:
    """The path of the node's object."""
    return f"{collection(layout)}/{NODE}"


def both(layout: str) -> tuple[tuple[str, str], ...]:
    """The operator watches all NodeAssignments, an enforcer its own."""
    path = collection(layout)
    return ((path, ""), (path, f"fieldSelector=metadata.name={NODE}"))


def body(layout: str, kind: str, metadata: Json, **parts: Any) -> Json:
    """An object of a layout."""
    version = f"{kinds.group(layout)}/{kinds.VERSION}"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def settings(count: int) -> Json:
    """What the spec of a node says besides its containers."""
    policy = {"name": "latency-critical", "generation": 3, "since": 2, "hardware": "0" * 16}
    return {
        "policy": policy,
        "mode": "Static",
        "cpuQuota": "Unlimited",
        "isolation": "Cpuset",
        "pools": {"reserved": reserved(count), "shared": shared(count)},
    }


def today_entry(one: Entry) -> Json:
    """Today's entry of a container."""
    block = {"numaNodes": [int(one.mems)], "resource": "memory", "bytes": 1 << 30}
    return {
        "podUID": one.uid,
        "namespace": one.namespace,
        "pod": one.pod,
        "container": "engine",
        "cpus": one.cpus,
        "mems": one.mems,
        "exclusive": True,
        "memory": [block],
    }


def today_spec(count: int, step: int) -> Json:
    """Today's spec."""
    return settings(count) | {"containers": [today_entry(one) for one in placed(count, step)]}


def today_status(count: int, step: int) -> Json:
    """What today's enforcer writes when its node has got one more container."""
    listed = [today_entry(one) for one in placed(count, step)]
    kept = ("podUID", "container", "cpus", "mems", "exclusive")
    pools = {"reserved": reserved(count), "shared": shared(count), "exclusive": f"1-{step + 1}"}
    return {
        "observedGeneration": step + 1,
        "pools": pools,
        "containers": [{key: one[key] for key in kept} for one in listed],
        "running": [one["podUID"] for one in listed],
        "lastPassTime": f"2026-01-01T00:{step // 60 % 60:02d}:{step % 60:02d}Z",
        "conditions": conditions(step + 1),
    }


def changed_status(count: int, step: int) -> Json:
    """What an enforcer writes of one more container if it lists exceptions only."""
    return {
        "observedGeneration": step + 1,
        "exclusiveCPUs": f"1-{step + 1}",
        "sharedCPUs": shared(count),
        "notRunning": [],
        "conditions": conditions(step + 1),
    }


def replace(layout: str, spec: Callable[[int], Json], step: int, stored: Stored) -> Call:
    """Replace the spec, if nothing was written since; the status stays."""
    metadata = _version(stored[one_object(layout)])
    path, kind = one_object(layout), "NodeAssignment"
    return Call("PUT", path, body(layout, kind, metadata, spec=spec(step)))


def patch_status(layout: str, status: Callable[[int], Json], step: int, _: Stored) -> Call:
    """Change some fields of the status."""
    return Call("PATCH", f"{one_object(layout)}/status", {"status": status(step)}, MERGE_PATCH)


def replace_status(layout: str, status: Callable[[int], Json], step: int, stored: Stored) -> Call:
    """Replace the status; the API server takes nothing else of the object."""
    old = stored[one_object(layout)]
    changed = {"spec": old["spec"], "status": old.get("status", {}) | status(step)}
    changed = body(layout, "NodeAssignment", _version(old), **changed)
    return Call("PUT", f"{one_object(layout)}/status", changed)


def _version(old: Json) -> Json:
    return {key: old["metadata"][key] for key in ("name", "uid", "resourceVersion")}


def created(layout: str, spec: Json, status: Json, *, managed: bool = True) -> list[Call]:
    """Create the node's object; unless `managed`, the API server forgets who set which field."""
    path = one_object(layout)
    calls = [
        Call("POST", collection(layout), body(layout, "NodeAssignment", {"name": NODE}, spec=spec)),
        Call("PATCH", f"{path}/status", {"status": status}, MERGE_PATCH),
    ]
    forget = Call("PATCH", path, {"metadata": {"managedFields": [{}]}}, MERGE_PATCH)
    return calls if managed else [*calls, forget]


def today(
    name: str, definition: Json, *, managed: bool = True, hardware_in_status: bool = True
) -> Layout:
    """Today's object, with any definition."""

    def begin(count: int) -> list[Call]:
        machine = {"topology": hardware(count)} if hardware_in_status else {}
        status = today_status(count, 0) | machine
        return created(name, today_spec(count, 0), status, managed=managed)

    def beat(step: int, _: Stored) -> Call:
        time = f"2026-01-01T01:{step // 60 % 60:02d}:{step % 60:02d}Z"
        status = {"status": {"lastPassTime": time}}
        return Call("PATCH", f"{one_object(name)}/status", status, MERGE_PATCH)

    def writes(count: int) -> list[Write]:
        spec, status = partial(today_spec, count), partial(today_status, count)
        return [
            Write("operator", "PUT of the spec", partial(replace, name, spec)),
            Write("enforcer", "merge patch of the status", partial(patch_status, name, status)),
            Write("heartbeat", "merge patch of lastPassTime", beat),
        ]

    return Layout(name, (definition,), begin, writes, both(name))


def slim(layout: Layout) -> Layout:
    """The layout, with answers to the writes that show metadata only."""

    def asked(call: Callable[[int, Stored], Call], step: int, stored: Stored) -> Call:
        return dataclasses.replace(call(step, stored), accept=METADATA_ONLY)

    def writes(count: int) -> list[Write]:
        found = layout.writes(count)
        return [dataclasses.replace(one, call=partial(asked, one.call)) for one in found]

    return dataclasses.replace(layout, writes=writes)


def text(entries: Iterable[Entry]) -> str:
    """All entries as one text, a line each."""
    return "".join(f"{one.line(one.number)}\n" for one in entries)


def listed(entries: Iterable[Entry]) -> list[str]:
    """All entries as lines."""
    return [one.line(one.number) for one in entries]


def mapped(entries: Iterable[Entry]) -> dict[str, str]:
    """All entries by the UID of their pod."""
    return {one.uid: one.line(one.number) for one in entries}


FORMS: Final[Mapping[str, tuple[Callable[[Iterable[Entry]], Any], Json]]] = {
    "text": (text, kinds.TEXT),
    "lines": (listed, kinds.lines()),
    "lines-checked": (listed, kinds.lines(checked=True)),
    "map": (mapped, {"type": "object", "maxProperties": 2048, "additionalProperties": kinds.LINE}),
}


def compact(name: str, form: str, *, managed: bool = True) -> Layout:
    """One object with compact entries and a status of exceptions; hardware stands elsewhere."""
    made, schema = FORMS[form]
    fields = kinds.record(spec=kinds.header({"containers": schema}), status=kinds.exceptions())

    def spec(count: int, step: int) -> Json:
        return settings(count) | {"containers": made(placed(count, step))}

    def begin(count: int) -> list[Call]:
        return created(name, spec(count, 0), changed_status(count, 0), managed=managed)

    def patch(count: int, step: int, stored: Stored) -> Call:
        """Only the pod that came and the one that went: a merge patch can, in a map."""
        gone, new = Entry(step - 1, count), Entry(step + count - 1, count)
        changes = {"pools": {"shared": shared(count)}}
        containers = {gone.uid: None, new.uid: new.line(new.number)}
        metadata = _version(stored[one_object(name)])
        changed = {"metadata": metadata, "spec": changes | {"containers": containers}}
        return Call("PATCH", one_object(name), changed, MERGE_PATCH)

    def writes(count: int) -> list[Write]:
        status = partial(changed_status, count)

        first = patch if form == "map" else None
        how = partial(first, count) if first else partial(replace, name, partial(spec, count))
        return [
            Write("operator", "merge patch of a key" if first else "PUT of the spec", how),
            Write("enforcer", "merge patch of the status", partial(patch_status, name, status)),
            Write("other", "PUT of the status", partial(replace_status, name, status)),
        ]

    definition = kinds.kind(name, "NodeAssignment", fields)
    return Layout(name, (definition,), begin, writes, both(name))
