"""Events: what `kubectl describe` and `kubectl get events` tell about an object."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from numapin_client.client import ApiClient
from numapin_client.resources import EVENTS, Json

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

_NOTE_BYTES: Final = 1024
_WORD_BYTES: Final = 128
_NAME_BYTES: Final = 253
"""Limits. Source: pkg/apis/core/validation `ValidateEventCreate`; RFC 1123 names."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who tells.

    Attributes:
        controller: such as `numapin.io/operator`.
        instance: which of them, such as the pod's or the node's name.
    """

    controller: str
    instance: str


@dataclass(frozen=True, slots=True)
class Happening:
    """What happened.

    Attributes:
        kind: `NORMAL` or `WARNING`.
        reason: why, one word in PascalCase, such as `TopologyAffinityError`.
        action: what was done about it, one word, such as `Refuse`.
        note: a sentence for people; cut at 1,024 bytes.
    """

    kind: str
    reason: str
    action: str
    note: str


def object_reference(body: Mapping[str, Any]) -> dict[str, str]:
    """Point at an object, given with its kind, apiVersion and metadata."""
    metadata = body["metadata"]
    reference = {
        "apiVersion": body.get("apiVersion", ""),
        "kind": body.get("kind", ""),
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {name: text for name, text in reference.items() if text}


def build_event(
    regarding: Mapping[str, str], happening: Happening, reporter: Reporter, now: datetime
) -> Json:
    """Write an Event about an object.

    Args:
        regarding: the object, as `object_reference` gives it.
        happening: what to tell.
        reporter: who tells.
        now: when; in UTC.

    Returns:
        An `events.k8s.io/v1` Event with a name of its own, within the limits of the API; about a
        cluster-scoped object it lies in the namespace `default`, as the API demands.
    """
    suffix = secrets.token_hex(8)
    stem = regarding["name"][: _NAME_BYTES - len(suffix) - 1].rstrip("-.")
    return {
        "metadata": {
            "name": f"{stem}.{suffix}",
            "namespace": regarding.get("namespace") or "default",
        },
        "regarding": dict(regarding),
        "type": happening.kind,
        "reason": _cut(happening.reason, _WORD_BYTES),
        "action": _cut(happening.action, _WORD_BYTES),
        "note": _cut(happening.note, _NOTE_BYTES),
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter.controller,
        "reportingInstance": _cut(reporter.instance, _WORD_BYTES),
    }


async def post_event(
    client: ApiClient, regarding: Mapping[str, str], happening: Happening, reporter: Reporter
) -> Json:
    """Tell about an object now; see `build_event`.

    Raises:
        NotFoundError: the object's namespace is gone.
        ClientError: as `ApiClient.create`.
    """
    return await client.create(
        EVENTS, build_event(regarding, happening, reporter, datetime.now(UTC))
    )


def _cut(text: str, limit_bytes: int) -> str:
    """Shorten to a number of UTF-8 bytes, without half a character, marked by an ellipsis."""
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    mark = "…".encode()
    return encoded[: limit_bytes - len(mark)].decode(errors="ignore") + "…"
