"""Whose a NodeResourceTopology is, and how ours is marked. Does no I/O."""

from collections.abc import Mapping
from hashlib import blake2b
from json import dumps
from typing import Any, Final

from numapin_api import names
from numapin_client.resources import NODES, Json

_FIELDS: Final = "f:zones"
"""In `managedFields`: what only we must have written."""


def with_owner(name: str, node_uid: str, said: Json) -> Json:
    """The object of a node, which goes with the Node: the garbage collector deletes it."""
    owner = {"apiVersion": NODES.api_version, "kind": NODES.kind, "name": name, "uid": node_uid}
    metadata = {
        "name": name,
        "labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY},
        "ownerReferences": [owner],
    }
    return {"metadata": metadata} | said


def foreign_writer(body: Mapping[str, Any]) -> str | None:
    """Who else writes an object, as far as it says so; None if it is ours.

    One that has our label and whose zones somebody else has changed is not ours any more.
    """
    metadata = body["metadata"]
    managers = [
        str(one.get("manager") or "somebody without a name")
        for one in metadata.get("managedFields") or ()
        if _FIELDS in (one.get("fieldsV1") or {})
    ]
    others = [one for one in managers if one != names.OPERATOR_FIELD_MANAGER]
    if others:
        return ", ".join(others)
    if (metadata.get("labels") or {}).get(names.MANAGED_BY_LABEL) == names.MANAGED_BY:
        return None
    return "somebody without a name"


def digest(body: Mapping[str, Any]) -> bytes:
    """What stands for all that we say in an object."""
    metadata = body["metadata"]
    said = (
        (metadata.get("labels") or {}).get(names.MANAGED_BY_LABEL),
        metadata.get("ownerReferences"),
        body.get("attributes"),
        body.get("zones"),
    )
    return blake2b(dumps(said, sort_keys=True).encode(), digest_size=16).digest()
