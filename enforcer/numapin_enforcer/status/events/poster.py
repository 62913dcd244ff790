"""Posts Events about the NodeAssignment."""

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_api.names import API_VERSION, GROUP, NODE_ASSIGNMENT_KIND
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError
from numapin_client.events import WARNING, Event, Reporter, object_reference, post_event
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.assignment.log_fields import log_fields
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.events.drift_events import DriftEvents

LOG: Final = logging.getLogger(__name__)

LONGEST_QUEUE: Final = 100
"""More Events than these are lost while the API server is away; the status counts them all."""


class Events(Protocol):
    """What is posted about the NodeAssignment; each call returns at once."""

    def drifted(self, drift: Drift, assignment: Mapping[str, Any] | None) -> None:
        """Log an external change that was reverted, and post an Event if one is due."""
        ...

    def post(self, event: Event, assignment: Mapping[str, Any] | None) -> None:
        """Post an Event, if there is a NodeAssignment."""
        ...


class EventPoster:
    """Posts Events in the background."""

    def __init__(self, api: ApiClient, node_name: str, clock: Clock | None = None) -> None:
        self._api, self._clock = api, clock or SystemClock()
        self._reporter = Reporter(f"{GROUP}/enforcer", node_name)
        self._drifts = DriftEvents()
        self._queue: deque[tuple[dict[str, str], Event]] = deque()
        self._worker = Worker("events", self._post_all, clock=self._clock)

    def drifted(self, drift: Drift, assignment: Mapping[str, Any] | None) -> None:
        """Log an external change that was reverted, and post an Event, unless there were many.

        A process with a writable cgroup can cause as many as it likes; the status counts them all.
        """
        note = self._drifts.note(drift, self._clock.monotonic())
        if note:
            left_out = self._drifts.pop_left_out()
            about = {"cause": drift.cause.value, "drift": drift, "left_out": left_out}
            extra = log_fields(drift.container) | about
            LOG.warning("reverted an external cpuset change", extra=extra)
            self.post(Event(WARNING, Reason.CPUSET_DRIFT, "Repair", note), assignment)

    def post(self, event: Event, assignment: Mapping[str, Any] | None) -> None:
        """Post an Event about the NodeAssignment, if there is one; returns at once."""
        if assignment is None or len(self._queue) >= LONGEST_QUEUE:
            return
        typed = {**assignment, "apiVersion": API_VERSION, "kind": NODE_ASSIGNMENT_KIND}
        self._queue.append((object_reference(typed), event))
        self._worker.request()

    async def run(self) -> None:
        """Post Events until cancelled."""
        await self._worker.run()

    async def _post_all(self) -> None:
        """Post what is in the queue; an Event that is refused is logged instead."""
        while self._queue:
            regarding, event = self._queue.popleft()
            try:
                await post_event(self._api, regarding, event, self._reporter)
            except ClientError as error:
                extra = {"error": error, "note": event.note}
                LOG.warning("an Event could not be posted", extra=extra)
