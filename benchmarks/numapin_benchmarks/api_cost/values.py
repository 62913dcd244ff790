"""What an operator would make of each layout: slotted values, and decoders that make them.

Does no I/O.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from types import GenericAlias
from typing import Any, Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_operator.observe.assignments.hardware import decode_hardware

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plain:
    """One container.

    Attributes:
        namespace: of the pod.
        pod: its name.
        container: the name of the container.
        uid: of the pod.
        cpus: exclusive to it.
        mems: its NUMA nodes.
        memory: NUMA nodes and sizes, as written.
        since: the generation in which the entry was written.
    """

    namespace: str
    pod: str
    container: str
    uid: str
    cpus: CpuSet
    mems: MemSet
    memory: str
    since: int


@dataclass(frozen=True, slots=True)
class PlainNode:
    """A node's object, or that of a pod."""

    name: str
    generation: int
    observed: int
    containers: tuple[Plain, ...]
    pools: Json
    conditions: tuple[Json, ...]


def parse_line(line: str) -> Plain:
    """Parse an entry."""
    names, container, *rest = line.split(" ")
    namespace, _, pod = names.partition("/")
    found = dict(part.split("=", 1) for part in rest)
    return Plain(
        intern(namespace),
        pod,
        intern(container),
        found["uid"],
        CpuSet.parse(found["cpus"]),
        MemSet.parse(found["mems"]),
        intern(found["memory"]),
        int(found["since"]),
    )


def _of_lines(lines: Callable[[Any], Any], raw: Json) -> PlainNode:
    spec, status = raw["spec"], raw.get("status", {})
    return PlainNode(
        raw["metadata"]["name"],
        raw["metadata"].get("generation", 1),
        status.get("observedGeneration", 0),
        tuple(map(parse_line, lines(spec["containers"]))),
        spec["pools"],
        tuple(status["conditions"]),
    )


def _of_pod(raw: Json) -> Plain:
    spec = raw["spec"]
    names = f"{spec['namespace']}/{spec['pod']}"
    return parse_line(f"{names} {spec['containers'][0]} since=1 uid={spec['podUID']}")


PARSERS: Final[Mapping[str, Callable[[Json], Any]]] = {
    "lines": lambda raw: _of_lines(iter, raw),
    "map": lambda raw: _of_lines(lambda found: found.values(), raw),
    "text": lambda raw: _of_lines(str.splitlines, raw),
    "pods": _of_pod,
}


def typed_decoder(layout: str) -> Callable[[bytes], list[Any]]:
    """The decoder of a chunk of a list with msgspec, which must be installed.

    It makes values without dictionaries between, and skips what no decision needs.
    """
    msgspec = importlib.import_module("msgspec")
    node = _pod_type(msgspec) if layout == "pods" else _node_type(msgspec, layout)
    chunk = msgspec.defstruct("Chunk", [("items", _list(node))])
    decode = msgspec.json.Decoder(chunk, dec_hook=lambda kind, text: kind.parse(text)).decode
    finish = _finish(msgspec.json.decode, layout)
    return lambda body: [finish(one) for one in decode(body).items]


def _list(kind: Any) -> GenericAlias:
    """The type of a list, for a type that is made here."""
    return GenericAlias(list, (kind,))


def _pod_type(msgspec: Any) -> Any:
    names = [(one, str) for one in ("namespace", "pod", "podUID")]
    spec = msgspec.defstruct("PodSpec", [*names, ("containers", list[str])])
    return msgspec.defstruct("Pod", [("spec", spec)])


def _node_type(msgspec: Any, layout: str) -> Any:
    define = msgspec.defstruct
    name = define("Name", [("name", str), ("generation", int, 1)])
    texts = [(one, str, "") for one in ("status", "reason", "message")]
    conditions = _list(define("Condition", [("type", str), *texts]))
    pools = define("Pools", [("reserved", CpuSet), ("shared", CpuSet)])
    spec = define("Spec", [("pools", pools), ("containers", _entries(msgspec, layout))])
    uids = [(one, list[str], ()) for one in ("running", "notRunning")]
    kept = [("observedGeneration", int, 0), ("conditions", conditions, ())]
    status = define("Status", [*kept, *uids, ("topology", msgspec.Raw, b"")])
    return define("Node", [("metadata", name), ("spec", spec), ("status", status)])


def _entries(msgspec: Any, layout: str) -> Any:
    """The type of the entries."""
    compact = {"lines": list[str], "map": dict[str, str], "text": str}
    if layout in compact:
        return compact[layout]
    fields = [("numaNodes", list[int]), ("resource", str), ("bytes", int)]
    blocks = _list(msgspec.defstruct("Block", fields))
    names = [(one, str) for one in ("podUID", "namespace", "pod", "container")]
    sets = [("cpus", CpuSet, CpuSet()), ("mems", MemSet, MemSet())]
    more = [("exclusive", bool, False), ("memory", blocks, ())]
    return _list(msgspec.defstruct("Entry", [*names, *sets, *more]))


def _finish(load: Callable[[bytes], Any], layout: str) -> Callable[[Any], Any]:
    """What is left to do for an object: to parse its lines, or its hardware."""

    def today(one: Any) -> Any:
        if one.status.topology:
            one.status.topology = decode_hardware(load(one.status.topology), None)
        return one

    def compact(one: Any) -> Any:
        found = one.spec.containers
        split = {"text": str.splitlines, "map": lambda by_uid: by_uid.values()}
        lines = split[layout](found) if layout in split else found
        one.spec.containers = tuple(map(parse_line, lines))
        return one

    def pod(one: Any) -> Plain:
        spec = one.spec
        names = f"{intern(spec.namespace)}/{spec.pod}"
        return parse_line(f"{names} {spec.containers[0]} since=1 uid={spec.podUID}")

    if layout == "pods":
        return pod
    return today if layout.startswith("today") else compact
