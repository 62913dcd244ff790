"""External changes that a pass reverted, and writes that it was refused: counted and logged."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_api.conditions.reasons import Reason
from numapin_client.events import WARNING, Event
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.assignment.log_fields import log_fields
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.drift import Cause, Drift
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from numapin_enforcer.status.events.other_writers import OtherWriters
from numapin_enforcer.status.events.poster import Events
from numapin_enforcer.status.state import State

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class DriftCount:
    """How many drifts a NodeAssignment has had, continued from its status after a restart."""

    _object: str = ""
    _added: Counter[str] = field(default_factory=Counter)
    _before: Counter[str] = field(default_factory=Counter)
    _total_before: int = 0
    """An API server with an older CRD stores the count and drops the causes."""

    def add(self, cause: Cause, count: int = 1) -> None:
        """Count some more of one cause."""
        self._added[cause.value] += count

    def resume(self, body: Mapping[str, Any]) -> None:
        """Continue from the status in the API, which this or an earlier process wrote.

        `body` is the NodeAssignment, with its uid and status. A new object starts at zero.
        """
        uid = str(body["metadata"].get("uid", ""))
        if self._object and uid != self._object:
            self._added, self._before, self._total_before = Counter(), Counter(), 0
        self._object = uid
        status = body.get("status") or {}
        counted = Counter(
            {str(cause): int(n) for cause, n in status.get("driftCauses", {}).items()}
        )
        self._before |= counted - self._added
        count = int(status.get("driftCount", 0))
        self._total_before = max(self._total_before, count - self._added.total())

    @property
    def causes(self) -> dict[str, int]:
        """The count by cause; causes without a drift are left out."""
        return dict(sorted((self._added + self._before).items()))

    @property
    def total(self) -> int:
        """The count of all drifts."""
        return self._added.total() + self._total_before


@dataclass(eq=False, slots=True)
class Changes:
    """What others changed. What a late update of the runtime may have made does not count."""

    updater: RuntimeUpdater
    events: Events
    clock: Clock = field(default_factory=SystemClock)
    count: DriftCount = field(default_factory=DriftCount, init=False)
    _writers: OtherWriters = field(default_factory=OtherWriters, init=False)

    def follow(self, one: Pass) -> None:
        """Count the changes on from the status that the API server has, and log them."""
        if one.body is not None:
            self.count.resume(one.body)
        naming = one.naming
        for drift in one.result.drifts:
            if naming is not None and not self._may_be_late(drift, naming):
                self.note(drift, one.body)
        for failure in one.result.failures if not one.failed_before else ():
            meant = one.result.desired.get(failure.write.path)
            about = log_fields(meant.container if meant is not None else None)
            LOG.warning("a cgroup write was refused", extra=about | {"error": failure.error})

    def state(self) -> State:
        """Which cgroups something else keeps changing."""
        return State(note=self._writers.describe(self.clock.monotonic()))

    def _may_be_late(self, drift: Drift, naming: CgroupNaming) -> bool:
        parsed = naming.parse(drift.path)
        id_ = parsed.container_id if parsed.kind is Kind.CONTAINER else ""
        return self.updater.may_have_made(id_, drift.found, drift.meant)

    def note(self, drift: Drift, body: Mapping[str, Any] | None) -> None:
        """Count a change, and post an Event about it if one is due."""
        self.count.add(drift.cause)
        self.events.drifted(drift, body)
        if note := self._writers.note(drift, self.clock.monotonic()):
            LOG.warning("another program keeps changing a cgroup", extra={"why": note})
            self.events.post(Event(WARNING, Reason.ANOTHER_WRITER, "Repair", note), body)
