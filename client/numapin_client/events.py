"""Events: what `kubectl describe` and `kubectl get events` show about an object."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from numapin_api.text import printable
from numapin_client.client import ApiClient
from numapin_client.resources import EVENTS, Json
from numapin_daemon.clock import Clock, SystemClock

WARNING: Final = "Warning"
NORMAL: Final = "Normal"

_NOTE_BYTES: Final = 1024
_WORD_BYTES: Final = 128
_NAME_BYTES: Final = 253
"""Limits. Source: pkg/apis/core/validation `ValidateEventCreate`; RFC 1123 names."""

_SYSTEM_CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class Reporter:
    """The component that reports Events.

    Attributes:
        controller: such as `numapin.io/operator`.
        instance: which instance of it, such as the name of the pod or of the node.
    """

    controller: str
    instance: str


@dataclass(frozen=True, slots=True)
class Event:
    """What is reported about an object. Source: Kubernetes `events.k8s.io/v1`, `Event`.

    Attributes:
        type: `Normal` or `Warning`.
        reason: why, one word in PascalCase, such as `TopologyAffinityError`.
        action: the action that was taken or that failed, a verb in PascalCase, such as `Repair`.
        note: a sentence for people; cut at 1,024 bytes.
        is_once: the API server refuses a second one about the same object with the same reason, for
            as long as it keeps the first (`kube-apiserver --event-ttl`, one hour by default).
    """

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    is_once: bool = False


def object_reference(body: Mapping[str, Any]) -> dict[str, str]:
    """The reference to an object, which is given with its kind, apiVersion and metadata."""
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
    regarding: Mapping[str, str], event: Event, reporter: Reporter, event_time: str
) -> Json:
    """Write an Event about an object.

    Args:
        regarding: the object, as `object_reference` gives it.
        event: what is reported.
        reporter: who reports it.
        event_time: when, in RFC 3339 with microseconds.

    Returns:
        An `events.k8s.io/v1` Event with a name of its own, within the limits of the API; one that
        is posted once is named after its object and reason. An Event about a cluster-scoped object
        is in the namespace `default`, as the API requires.
    """
    suffix = _name_of_subject(regarding, event) if event.is_once else secrets.token_hex(8)
    stem = regarding["name"][: _NAME_BYTES - len(suffix) - 1].rstrip("-.")
    return {
        "metadata": {
            "name": f"{stem}.{suffix}",
            "namespace": regarding.get("namespace") or "default",
        },
        "regarding": dict(regarding),
        "type": event.type,
        "reason": _cut(event.reason, _WORD_BYTES),
        "action": _cut(event.action, _WORD_BYTES),
        "note": _cut(event.note, _NOTE_BYTES),
        "eventTime": event_time,
        "reportingController": reporter.controller,
        "reportingInstance": _cut(reporter.instance, _WORD_BYTES),
    }


async def post_event(
    client: ApiClient,
    regarding: Mapping[str, str],
    event: Event,
    reporter: Reporter,
    clock: Clock = _SYSTEM_CLOCK,
) -> Json:
    """Create an Event about an object, dated now; see `build_event`.

    Raises:
        AlreadyExistsError: it is to be posted once, and was.
        NotFoundError: the object's namespace is gone.
        ClientError: as `ApiClient.create`.
    """
    event_time = clock.now_text(microseconds=True)
    return await client.create(EVENTS, build_event(regarding, event, reporter, event_time))


def _name_of_subject(regarding: Mapping[str, str], event: Event) -> str:
    return sha256(f"{regarding.get('uid')} {event.reason}".encode()).hexdigest()[:16]


def _cut(text: str, limit_bytes: int) -> str:
    """Shorten to a number of UTF-8 bytes, at a whole character; an ellipsis marks the cut.

    What is not printable is escaped: a tenant may have chosen it.
    """
    text = printable(text)
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    mark = "…".encode()
    return encoded[: limit_bytes - len(mark)].decode(errors="ignore") + "…"
