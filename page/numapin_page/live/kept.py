"""Objects as compact text: a cluster of 5,000 nodes fits in some dozens of megabytes.

Does no I/O.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from numapin_operator.observe.node_status import json_object, json_objects, not_served

Json = dict[str, Any]

_METADATA: Final = ("name", "uid", "resourceVersion", "generation")


def kept(body: Json) -> str:
    """What is shown of a NodeAssignment, a NodeReport or a CpuPolicy."""
    found = {"metadata": _metadata(body), "spec": body.get("spec") or {}}
    return _text(found | {"status": body.get("status") or {}})


def kept_topology(body: Json) -> str:
    """The hardware of a node: nodes of one model share one text."""
    return sys.intern(_text({"status": body.get("status") or {}}))


def kept_node(body: Json) -> str:
    """Why no enforcer is expected to answer on a Node; empty if one is."""
    return sys.intern(str(not_served(json_object(body, "status")) or ""))


def _metadata(body: Json) -> Json:
    metadata = body["metadata"]
    found = {name: metadata[name] for name in _METADATA if name in metadata}
    created = metadata.get("creationTimestamp")
    return found | ({"creationTimestamp": created} if created else {})


def _text(found: Json) -> str:
    return json.dumps(found, separators=(",", ":"))


def pods_like(text: str, assignments: Iterable[tuple[str, str]], most: int) -> list[Json]:
    """The pods of NodeAssignments whose `namespace/name` has a text in it.

    Args:
        text: what is looked for.
        assignments: the name of each node, and its NodeAssignment as it is kept.
        most: how many pods are enough.
    """
    found: dict[tuple[str, str], Json] = {}
    for node, kept_text in assignments:
        if text not in kept_text:
            continue
        body = json.loads(kept_text)
        for name in _pods(body):
            if text in name:
                found.setdefault((name, node), {"pod": name, "node": node})
                if len(found) == most:
                    return list(found.values())
    return list(found.values())


def _pods(assignment: Json) -> Iterator[str]:
    """The pods that an assignment names, as `namespace/name`: of lines, entries and refusals."""
    spec, status = assignment["spec"], assignment["status"]
    for line in spec.get("assigned") or ():
        yield str(line).partition(" ")[0]
    listed = (spec.get("containers"), spec.get("refused"), status.get("refusals"))
    for one in (entry for entries in listed for entry in json_objects(entries)):
        yield f"{one.get('namespace')}/{one.get('pod')}"
