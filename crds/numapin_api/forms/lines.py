"""A container's CPUs and memory as one line of text, and back.

    trading/engine-0 engine cpus=2,34 mems=0 memory=0:1Gi since=4 uid=5c1d...

A line is a pod, a container, then `key=value` in a fixed order. The API server's work grows with
the number of values in an object, and a line is one. Both sides are JSON objects of v1alpha1, so
that programs without the models read lines too. Does no I/O.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

Json = dict[str, Any]

LINE_LENGTH: Final = 16_384
"""Characters of a line: 64 blocks of memory and 64 grants with usual sets; etcd bounds the sum."""

_MOST_BLOCKS: Final = 64
_MOST_NODES: Final = 128
"""Blocks of memory of a line, and NUMA nodes of a block, as the models bound them. A range in a
damaged line could stand for more values than a process has memory for."""

_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_SAFE: Final = "!\"#$&'()*+,-.:;<=>?@[]^_`{|}~"
"""What a name keeps as it is: all but white space, `/`, `%` and what is not ASCII."""

_USUAL: Final = re.compile(r"[A-Za-z0-9._-]+\Z", re.ASCII)
_RESOURCE: Final = re.compile(r"(?:memory|hugepages-[1-9][0-9]*[KMGT]i)\Z", re.ASCII)
_BYTES: Final = re.compile(r"([0-9]{1,19})([KMG]i)?\Z", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,18}\Z", re.ASCII)
_TEXTS: Final = {"cpus": "cpus", "mems": "mems", "uid": "podUID", "movedAt": "movedAt"}
_FLAGS: Final = ("outdated", "claimed")
_OF_ENTRIES: Final = frozenset({"podUID", "namespace", "pod", "container", "memory", "moving"})
_LEAST_PARTS: Final = 3
"""A pod, a container and the UID."""


class LineError(ValueError):
    """A text is not a line; the message says what is wrong, and what to write."""


def print_line(entry: Mapping[str, Any], since: int) -> str:
    """The line of a container.

    Args:
        entry: an entry of `spec.containers` as v1alpha1 has it.
        since: the generation of the NodeAssignment that first had its CPUs and NUMA nodes.
    """
    return f"{_pod(entry)} {_name(entry['container'])} {' '.join(_pairs(entry, since))}"


def _pod(entry: Mapping[str, Any]) -> str:
    return f"{_name(entry['namespace'])}/{_name(entry['pod'])}"


def _name(text: str) -> str:
    """A name; those of Kubernetes stay as they are."""
    return text if _USUAL.match(text) else quote(text, safe=_SAFE)


def _pairs(entry: Mapping[str, Any], since: int) -> Iterator[str]:
    if cpus := entry.get("cpus"):
        yield f"cpus={cpus}"
        if not entry.get("exclusive"):
            yield "exclusive=false"
    if mems := entry.get("mems"):
        yield f"mems={mems}"
    for block in entry.get("memory") or ():
        yield f"{block['resource']}={_ids(block['numaNodes'])}:{_amount(block['bytes'])}"
    if grants := entry.get("grants"):
        yield f"grants={'/'.join(grants)}"
    for flag in _FLAGS:
        if entry.get(flag):
            yield f"{flag}=true"
    if moving := entry.get("moving"):
        yield from _moving(moving)
    if moved_at := entry.get("movedAt"):
        yield f"movedAt={moved_at}"
    yield f"since={since}"
    yield f"uid={_name(entry['podUID'])}"


def _moving(moving: Mapping[str, Any]) -> Iterator[str]:
    yield f"leaving={moving['leaving']}"
    if mems := moving.get("leavingMems"):
        yield f"leavingMems={mems}"
    if at := moving.get("at"):
        yield f"leaveAt={at}"
    if pod := moving.get("pod"):
        yield f"for={_name(moving.get('namespace') or '')}/{_name(pod)}"


def _ids(nodes: list[int]) -> str:
    """NUMA nodes in their order; those that ascend by one are a range."""
    parts: list[list[int]] = []
    for node in nodes:
        if parts and node == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], node]
        else:
            parts.append([node])
    return ",".join("-".join(map(str, part)) for part in parts)


def _amount(size: int) -> str:
    for unit, each in _UNITS:
        if size and size % each == 0:
            return f"{size // each}{unit}"
    return str(size)


def parse_line(line: object) -> tuple[Json, int]:
    """An entry of `spec.containers` as v1alpha1 has it, and `since`.

    The values are those of the line, and not checked: the schema of v1alpha1 does that.

    Raises:
        LineError: it is no line.
    """
    if not isinstance(line, str):
        raise LineError(f"should be a text, not {line!r:.60}")
    if len(line) > LINE_LENGTH:
        raise LineError(f"has {len(line)} characters, at most {LINE_LENGTH} are read")
    parts = line.split(" ")
    if len(parts) < _LEAST_PARTS or "/" not in parts[0]:
        raise LineError(
            f"should be like `namespace/pod container cpus=2 uid=...`, not {line!r:.60}"
        )
    namespace, _, pod = parts[0].partition("/")
    entry: Json = {"namespace": _text(namespace), "pod": _text(pod), "container": _text(parts[1])}
    since = _take_pairs(entry, parts[2:])
    if "podUID" not in entry:
        raise LineError("has no uid; add uid= with the metadata.uid of the pod")
    if entry.get("cpus"):
        entry.setdefault("exclusive", True)
    return entry, since


def _take_pairs(entry: Json, pairs: list[str]) -> int:
    since, seen = 0, set[str]()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not value:
            raise LineError(f"should have key=value, not {pair!r:.60}")
        if _RESOURCE.match(key):
            blocks = entry.setdefault("memory", [])
            if len(blocks) == _MOST_BLOCKS:
                raise LineError(f"has more than {_MOST_BLOCKS} blocks of memory")
            blocks.append(_block(key, value))
            continue
        if key in seen:
            raise LineError(f"has {key} twice")
        seen.add(key)
        if key == "since":
            since = _number(key, value)
        else:
            _take(entry, key, value)
    return since


def _take(entry: Json, key: str, value: str) -> None:
    if key in _TEXTS:
        entry[_TEXTS[key]] = _text(value)
    elif key == "exclusive" or key in _FLAGS:
        entry[key] = _flag(key, value)
    elif key == "grants":
        entry[key] = value.split("/")
    elif key in ("leaving", "leavingMems"):
        entry.setdefault("moving", {})[key] = value
    elif key == "leaveAt":
        entry.setdefault("moving", {})["at"] = value
    elif key == "for":
        namespace, _, pod = value.partition("/")
        entry.setdefault("moving", {}).update(namespace=_text(namespace), pod=_text(pod))
    elif key in entry or key in _OF_ENTRIES:
        raise LineError(f"has {key}, which no line has")
    else:
        entry[key] = value  # a later operator has it; the check of the schema names it


def _flag(key: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise LineError(f"{key} should be true or false, not {value!r:.60}")
    return value == "true"


def _number(key: str, value: str) -> int:
    if not _NUMBER.match(value):
        raise LineError(f"{key} should be a whole number, not {value!r:.60}")
    return int(value)


def _block(resource: str, value: str) -> Json:
    nodes, _, amount = value.partition(":")
    found = _BYTES.match(amount)
    if found is None:
        raise LineError(f"{resource} should be like 0:1Gi, not {value!r:.60}")
    each = dict(_UNITS).get(found[2] or "", 1)
    ids = list(islice(_node_ids(resource, nodes), _MOST_NODES + 1))
    if len(ids) > _MOST_NODES:
        raise LineError(f"{resource} should have at most {_MOST_NODES} NUMA nodes")
    return {
        "numaNodes": ids,
        "resource": resource,
        "bytes": int(found[1]) * each,
    }


def _node_ids(resource: str, text: str) -> Iterator[int]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = (_number(resource, one[:5]) for one in (first, last if dash else first))
        if high < low:
            raise LineError(f"{resource} should have ascending NUMA nodes, not {part!r:.60}")
        yield from range(low, high + 1)


def _text(value: str) -> str:
    if "%" not in value:
        return value
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeError as error:
        raise LineError(f"should be Unicode text, not {value!r:.60}") from error
