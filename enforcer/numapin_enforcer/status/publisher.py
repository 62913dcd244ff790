"""Writes the newest status to the API server: on change only, and again after a failure."""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from numapin_api.names import ENFORCER_FIELD_MANAGER
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import NODE_ASSIGNMENTS, Json, Key, Resource
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.status.merge_patch import merge_patch
from numapin_enforcer.status.report import Report

LOG: Final = logging.getLogger(__name__)


COUNTERS: Final = frozenset({"driftCount", "driftCauses"})
"""Fields that may change with each pass, at a rate that any writer of cgroups can choose."""

COUNTERS_SECONDS: Final = 1.0
"""The least time between two writes of nothing but counters."""

AGE_FIELD: Final = "lastPassTime"


class StatusApi(Protocol):
    """What the publisher needs of the API server."""

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        """Change some fields of an object."""
        ...


class Publisher:
    """Holds the newest status and what the API server has; `run` writes the difference.

    A status that is not written yet is replaced by the next one.
    """

    def __init__(self, api: StatusApi, node_name: str, clock: Clock | None = None) -> None:
        self._api, self._key, self._clock = api, Key(node_name), clock or SystemClock()
        self.on_written: Callable[[Report], object] = bool
        """Called with each status that the API server has taken."""
        self._report: Report | None = None
        self._known: Json | None = None
        self._dropped: dict[str, Any] = {}
        """What the API server left out of the last patch."""
        self._counters_due_seconds = 0.0
        """When nothing but counters may be written again."""
        self._pass_time = ""
        """When the last pass over every cgroup ended; empty before the first one."""
        self._worker = Worker(
            "status",
            self._write,
            expected=(ClientError,),
            failure="the status could not be written, it will be retried",
            backoff=Backoff(base_seconds=0.2),
            clock=self._clock,
        )

    @property
    def problem(self) -> str:
        """Why the API server does not have the newest status yet; empty when it has."""
        return str(self._worker.problem or "")

    def publish(self, report: Report) -> None:
        """Have this status written instead of any earlier one; returns at once."""
        if report != self._report:
            self._report = report
            self._worker.request()

    def passed(self) -> None:
        """A pass over every cgroup has ended: the status says when, with its next change."""
        self._pass_time = self._clock.now_text()

    def observe(self, body: Json | None) -> None:
        """What the API server has now, as the watch saw it; None when the object is gone.

        An object that is new to us may hold what the next report must build on, such as a count;
        so a status from before it came is not written.
        """
        if self._known is None:
            self._report = None
        if body is None or self._known is None or _version(body) >= _version(self._known):
            self._known = body
            self._worker.request()

    async def run(self) -> None:
        """Write the newest status until cancelled; a failure is retried."""
        await self._worker.run()

    async def _write(self) -> float | None:
        """Write once, if there is an object and it has another status.

        Counters alone wait until their time has come, or are written with what comes earlier. The
        time of the last pass is never written alone.

        Returns:
            The seconds until counters are due; None if none wait.

        Raises:
            ClientError: the API server did not take it.
        """
        report = self._report  # a newer one may come while this one is under way
        if report is None or self._known is None:
            return None
        patch, now_seconds = self._patch(report, self._known), self._clock.monotonic()
        if not patch or patch == self._dropped:
            return None
        if patch.keys() <= COUNTERS and now_seconds < self._counters_due_seconds:
            return self._counters_due_seconds - now_seconds
        status = patch | ({AGE_FIELD: self._pass_time} if self._pass_time else {})
        body = {"metadata": {"uid": self._known["metadata"]["uid"]}, "status": status}
        with suppress(NotFoundError):  # the watch reports when there is one again
            answer = await self._api.merge_patch(
                NODE_ASSIGNMENTS,
                self._key,
                body,
                subresource="status",
                field_manager=ENFORCER_FIELD_MANAGER,
            )
            self._learn(answer, self._patch(report, answer))
            self.on_written(report)
        if not patch.keys().isdisjoint(COUNTERS):
            self._counters_due_seconds = now_seconds + COUNTERS_SECONDS
        return None

    def _learn(self, answer: Json, left: dict[str, Any]) -> None:
        """Take in what the API server made of a patch.

        An API server whose CRD is older than the enforcer drops fields that it does not know. They
        must not be sent for ever.
        """
        if left and left != self._dropped:
            LOG.warning(
                "the API server stores only a part of the status; is its CRD older than this?",
                extra={"fields": sorted(left)},
            )
        self._dropped = left
        if self._known is not None and _version(answer) >= _version(self._known):
            self._known = answer

    def _patch(self, report: Report, known: Json) -> dict[str, Any]:
        raw = known.get("status") or {}
        status = {key: value for key, value in raw.items() if key != AGE_FIELD}
        return merge_patch(status, report.wire(status, self._clock.now_text()))


def _version(body: Json) -> int:
    """An object's resourceVersion as a number, by which newer is greater.

    Source: KEP-5504, "Comparable Resource Version".
    """
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
