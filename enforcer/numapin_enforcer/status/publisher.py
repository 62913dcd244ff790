"""Writes the newest report to the API server: on change only, and again after a failure."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from numapin_client.errors import ClientError
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, Json
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.status.publishing.beside import NodeTopology, OldStatus
from numapin_enforcer.status.publishing.hold import HOLD_SECONDS, may_wait
from numapin_enforcer.status.publishing.target import StatusApi, Target
from numapin_enforcer.status.report import COUNT_FIELDS, STATUS_FIELDS, Report

COUNTERS: Final = frozenset({"driftCount", "driftCauses"})
"""Fields that may change with each pass, at a rate that any writer of cgroups can choose."""

COUNTERS_SECONDS: Final = 1.0
"""The least time between two writes of nothing but counters."""

AGE_FIELD: Final = "lastPassTime"

CREATED_SECONDS: Final = 0.5
"""How long the operator may take to create the NodeReport after a new NodeAssignment."""

DELETED_SECONDS: Final = 5.0
"""How long it may take to create a NodeReport again that somebody else has deleted."""


class Publisher:
    """Holds the newest report and what the API server has; `run` writes the difference.

    It goes into the NodeReport, or as a status into the NodeAssignment while this node has no
    NodeReport: then the operator is an older one. A report that is not written yet is replaced by
    the next one.
    """

    def __init__(self, api: StatusApi, node_name: str, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        fields = frozenset({*STATUS_FIELDS, *COUNT_FIELDS})
        self._assignment = Target(api, NODE_ASSIGNMENTS, node_name, fields)
        self._node_report = Target(api, NODE_REPORTS, node_name)
        self.topology = NodeTopology(api, node_name, self._clock)
        self._old_status = OldStatus(self._assignment, self._node_report, self._clock)
        self.on_written: Callable[[Report], object] = bool
        """Called with each report that the API server has taken."""
        self._report: Report | None = None
        self._missing_since_seconds: float | None = None
        """Since when there is no NodeReport; None if there is one, or that is not known."""
        self._grace_seconds = CREATED_SECONDS
        self._counters_due_seconds = 0.0
        """When nothing but counters may be written again."""
        self._hold_until_seconds: float | None = None
        """Until when a report waits for containers; None if none does."""
        self._waited_for: object = None
        """Of the last NodeReport that was written; see `Judged`."""
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
        """Why the API server does not have the newest report yet; empty when it has."""
        if self._worker.problem is None and self._report is not None and self._is_undecided():
            return "it is not known yet whether this node has a NodeReport"
        return str(self._worker.problem or self.topology.problem)

    @property
    def reported(self) -> Mapping[str, Any]:
        """What an enforcer has reported of this node, by the names of both forms."""
        newer = {key: value for key, value in self._node_report.status.items() if value}
        return {**self._assignment.status, **newer}

    def publish(self, report: Report) -> None:
        """Have this report written instead of any earlier one; returns at once."""
        if report != self._report:
            self._report = report
            self._worker.request()

    def passed(self) -> None:
        """A pass over every cgroup has ended: a status says when, with its next change."""
        self._pass_time = self._clock.now_text()

    def observe(self, body: Json | None) -> None:
        """The NodeAssignment as the API server has it, as the watch saw it; None when it is gone.

        An object that is new to us may hold what the next report must build on, such as a count;
        so a report from before it came is not written.
        """
        if self._assignment.body is None:
            self._report = None
            if self._missing_since_seconds is not None:
                self._note_missing(CREATED_SECONDS)
        self._take(self._assignment, body)

    def observe_report(self, body: Json | None) -> bool:
        """The NodeReport as the API server has it; None while there is none.

        Returns:
            Whether it is new to us, so that a pass must build on what it says.
        """
        is_new = body is not None and self._node_report.body is None
        if is_new:
            self._report, self._missing_since_seconds = None, None
        elif body is None and self._missing_since_seconds is None:
            was_there = self._node_report.body is not None
            self._note_missing(DELETED_SECONDS if was_there else CREATED_SECONDS)
        self._take(self._node_report, body)
        return is_new

    async def run(self) -> None:
        """Write the newest report until cancelled; a failure is retried."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._worker.run(), name="status")
            tasks.create_task(self.topology.run(), name="topology")
            tasks.create_task(self._old_status.run(), name="old-status")

    def _take(self, target: Target, body: Json | None) -> None:
        if target.observe(body):
            self._worker.request()
            self._old_status.request()

    def _note_missing(self, grace_seconds: float) -> None:
        self._missing_since_seconds = self._clock.monotonic()
        self._grace_seconds = grace_seconds

    def _is_undecided(self) -> bool:
        return self._node_report.body is None and self._missing_since_seconds is None

    async def _write(self) -> float | None:
        """Write once, if there are objects and they have another status.

        Returns:
            The seconds until something is due that waits; None if nothing does.

        Raises:
            ClientError: the API server did not take it.
        """
        report = self._report  # a newer one may come while this one is under way
        if report is None or self._assignment.body is None or self._is_undecided():
            return None
        if self._node_report.body is not None:
            return await self._write_report(report)
        if (left := self._grace_left_seconds()) > 0:
            return left
        return await self._write_status(report)

    def _grace_left_seconds(self) -> float:
        """How long the NodeReport may still come before a status is written instead."""
        is_old_way = bool(self._assignment.status.get("observedGeneration"))
        since = self._missing_since_seconds
        if since is None or (is_old_way and self._grace_seconds == CREATED_SECONDS):
            return 0.0
        return since + self._grace_seconds - self._clock.monotonic()

    async def _write_status(self, report: Report) -> float | None:
        """The status of the NodeAssignment. The time of the last pass is never written alone."""
        target, self._waited_for, self._hold_until_seconds = self._assignment, None, None
        wanted = report.wire(target.status, self._clock.now_text())
        wanted |= {key: target.status[key] for key in (AGE_FIELD,) if key in target.status}
        patch = target.patch_to(wanted)
        if (left := self._counters_left_seconds(patch)) > 0:
            return left
        age = {AGE_FIELD: self._pass_time} if self._pass_time else {}
        await self._send(target, patch, wanted, report, **age)
        return None

    async def _write_report(self, report: Report) -> float | None:
        """The NodeReport, and the hardware beside it."""
        if report.content.topology is not None:
            self.topology.publish(report.content.topology)
        target = self._node_report
        wanted = report.node_report(target.status, self._clock.now_text())
        patch = target.patch_to(wanted)
        left = max(
            self._counters_left_seconds(patch), self._hold_left_seconds(report, wanted, patch)
        )
        if left > 0:
            return left
        if not patch or await self._send(target, patch, wanted, report):
            self._waited_for, self._hold_until_seconds = report.judged.waited_for, None
        return None

    def _counters_left_seconds(self, patch: Mapping[str, Any]) -> float:
        """How long a patch of nothing but counters waits."""
        if not patch or not patch.keys() <= COUNTERS:
            return 0.0
        return self._counters_due_seconds - self._clock.monotonic()

    def _hold_left_seconds(
        self, report: Report, wanted: Mapping[str, Any], patch: Mapping[str, Any]
    ) -> float:
        """How long a report waits for containers that are about to start."""
        waited_for, changed = report.judged.waited_for, frozenset(patch) - COUNTERS
        is_urgent = waited_for is None or waited_for != self._waited_for
        if is_urgent or not may_wait(self._node_report.status, wanted, changed):
            self._hold_until_seconds = None
            return 0.0
        now_seconds = self._clock.monotonic()
        if self._hold_until_seconds is None:
            self._hold_until_seconds = now_seconds + HOLD_SECONDS
        return self._hold_until_seconds - now_seconds

    async def _send(
        self,
        target: Target,
        patch: Mapping[str, Any],
        wanted: Mapping[str, Any],
        report: Report,
        **besides: object,
    ) -> bool:
        """Send what differs, if anything does; returns whether the API server has taken it."""
        now_seconds = self._clock.monotonic()
        if not patch or not await target.write(patch, wanted, **besides):
            return False
        self.on_written(report)
        self._old_status.request()
        if not patch.keys().isdisjoint(COUNTERS):
            self._counters_due_seconds = now_seconds + COUNTERS_SECONDS
        return True
