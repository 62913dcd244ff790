"""Edge: tells people by Events what was set right."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from numapin_api.conditions import Reason
from numapin_api.names import API_VERSION, GROUP, NODE_ASSIGNMENT_KIND
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError
from numapin_client.events import WARNING, Event, Reporter, object_reference, post_event
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.drift_events import DriftEvents

LOG: Final = logging.getLogger(__name__)

LONGEST_QUEUE: Final = 100
"""More Events than these are lost while the API server is away; the status counts them all."""


class EventTeller:
    """Posts Events about the node's NodeAssignment; nobody waits for it."""

    def __init__(self, api: ApiClient, node_name: str) -> None:
        self._api = api
        self._reporter = Reporter(f"{GROUP}/enforcer", node_name)
        self._drifts = DriftEvents()
        self._queue: asyncio.Queue[tuple[dict[str, str], Event]] = asyncio.Queue(LONGEST_QUEUE)

    def drifted(self, drift: Drift, assignment: Mapping[str, Any] | None) -> None:
        """Tell of a cpuset that was repaired, unless much was told already."""
        extra = {"cause": drift.cause.value, "drift": drift}
        LOG.warning("a cpuset was changed by others and set right", extra=extra)
        note = self._drifts.note(drift, time.monotonic())
        if note:
            self.tell(Event(WARNING, Reason.CPUSET_DRIFT, "Repair", note), assignment)

    def tell(self, event: Event, assignment: Mapping[str, Any] | None) -> None:
        """Tell something about the NodeAssignment, if there is one."""
        if assignment is None or self._queue.full():
            return
        typed = {**assignment, "apiVersion": API_VERSION, "kind": NODE_ASSIGNMENT_KIND}
        self._queue.put_nowait((object_reference(typed), event))

    async def run(self) -> None:
        """Post what is told, until cancelled; one that is not taken is only logged."""
        while True:
            regarding, event = await self._queue.get()
            try:
                await post_event(self._api, regarding, event, self._reporter)
            except ClientError as error:
                extra = {"error": error, "note": event.note}
                LOG.warning("an Event could not be posted", extra=extra)
