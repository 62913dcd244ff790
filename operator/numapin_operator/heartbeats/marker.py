"""Reports a silent enforcer in place of itself: `Ready` becomes Unknown, and an Event says so."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from numapin_api import names
from numapin_api.conditions.reasons import ConditionType, Reason
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.events import WARNING, Event, Reporter, object_reference, post_event
from numapin_client.resources import LEASES, NODE_ASSIGNMENTS, NODE_REPORTS, Json, Key, Resource
from numapin_daemon.clock import Clock
from numapin_operator.heartbeats.silence import Beat

_log = logging.getLogger(__name__)

_READY: Final = ConditionType.READY.value


class Marker:
    """Reports silent enforcers."""

    def __init__(self, api: ApiClient, namespace: str, reporter: Reporter, clock: Clock) -> None:
        """Write over this client.

        Args:
            api: an open client.
            namespace: where the Leases are.
            reporter: who reports Events.
            clock: the date and time of what is written.
        """
        self._api, self._namespace, self._reporter, self._clock = api, namespace, reporter, clock

    async def mark(self, node: str, beat: Beat) -> None:
        """Report that the enforcer of a node is silent, unless it has renewed or never reported.

        The Lease is read first: a watch may be late.

        Raises:
            ConflictError: somebody changed the object meanwhile.
            ClientError: the API server does not answer, or refuses.
        """
        try:
            lease = await self._api.get(LEASES, Key(node, self._namespace))
            if Beat.decode(lease) != beat:
                return
            kind, body = await self._reporting_object(node)
        except NotFoundError:
            return
        conditions = (body.get("status") or {}).get("conditions") or ()
        changed = mark_unknown(conditions, beat, self._clock.now_text())
        if changed is None:
            return
        metadata = {key: body["metadata"][key] for key in ("uid", "resourceVersion")}
        await self._api.merge_patch(
            kind,
            Key(node),
            {"metadata": metadata, "status": {"conditions": changed}},
            subresource="status",
            field_manager=names.OPERATOR_FIELD_MANAGER,
        )
        about = {"node": node, "renewed": beat.renewed}
        _log.warning("an enforcer is silent, its node is marked Unknown", extra=about)
        await self._post_event(kind, body, describe(beat))

    async def _reporting_object(self, node: str) -> tuple[Resource, Json]:
        """Where the enforcer of a node has reported last; raises NotFoundError if nowhere."""
        try:
            body = await self._api.get(NODE_REPORTS, Key(node))
        except NotFoundError:
            body = {}
        if (body.get("status") or {}).get("conditions"):
            return NODE_REPORTS, body
        return NODE_ASSIGNMENTS, await self._api.get(NODE_ASSIGNMENTS, Key(node))

    async def _post_event(self, kind: Resource, body: Json, note: str) -> None:
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        event = Event(WARNING, Reason.ENFORCER_UNKNOWN, "Watch", note)
        try:
            await post_event(self._api, object_reference(typed), event, self._reporter, self._clock)
        except ClientError as error:
            _log.warning("an Event could not be posted", extra={"error": error, "note": note})


def mark_unknown(
    conditions: Sequence[Mapping[str, Any]], beat: Beat, now: str
) -> list[Mapping[str, Any]] | None:
    """The conditions with `Ready` Unknown; None if it is, or was never reported.

    All else stays as the enforcer has reported it, as the node controller of Kubernetes leaves it.
    """
    ready = next((one for one in conditions if one["type"] == _READY), None)
    if ready is None or ready["status"] == "Unknown":
        return None
    unknown = {
        **ready,
        "status": "Unknown",
        "lastTransitionTime": now,
        "reason": str(Reason.ENFORCER_UNKNOWN),
        "message": describe(beat),
    }
    return [unknown if one is ready else one for one in conditions]


def describe(beat: Beat) -> str:
    """What to say of a silent enforcer."""
    silent_seconds = f"{beat.lasts_seconds:.0f} s or more"
    return (
        f"the enforcer has not renewed its Lease since {beat.renewed}, for {silent_seconds}: "
        "what it reported last may not be so any more"
    )
