"""Pods that wait for a node."""

from collections.abc import Container
from typing import Any

from numapin_api import names
from numapin_operator.observe.holding.held_pod import HeldPod, held_pod
from numapin_operator.observe.pods.parser import parse_pod
from support.values.operator import Body, pod_body

GATE = {"name": names.HOLD_GATE}


def held_body(
    name: str, cpu: str = "2", *, spec: Body | None = None, owner: str = "", **others: Any
) -> Body:
    """A pod with numapin's gate, as the API server sends it; `owner` is KIND/UID of its owner."""
    body = pod_body(name, cpu, node="", **others)
    del body["spec"]["nodeName"]
    body["metadata"]["resourceVersion"] = "1"
    if owner:
        kind, _, uid = owner.partition("/")
        named = {"apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, "controller": True}
        body["metadata"]["ownerReferences"] = [named]
    body["spec"] |= {"schedulingGates": [GATE]} | (spec or {})
    return body


def held_view(name: str, cpu: str = "2", **others: Any) -> HeldPod:
    """The same, decoded."""
    found = decoded(held_body(name, cpu, **others))
    assert found is not None
    return found


def decoded(body: Body, known: Container[str] = ()) -> HeldPod | None:
    """A pod that is not bound; None if it is not ours."""
    return held_pod(body, lambda: parse_pod(body), known)


def patched(body: Body, patch: Body) -> Body:
    """A pod after a JSON merge patch. Source: RFC 7396."""
    merged = dict(body)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            known = merged.get(key)
            merged[key] = patched(known if isinstance(known, dict) else {}, value)
        else:
            merged[key] = value
    return merged
