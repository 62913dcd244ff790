"""Where the controller sends what is not a NodeAssignment: logs, counts, Events and outcomes."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final

from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_client.errors import ClientError
from numapin_daemon.logs.log_limit import LogLimit
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.nodes.assignment_writer import WriteResult
from numapin_operator.nodes.decide import Decision, NodePicture, Write
from numapin_operator.nodes.decide.waits import lacking_devices
from numapin_operator.nodes.events.notices import (
    notice_of_waiting,
    notices_of_written,
    with_places,
)
from numapin_operator.nodes.events.refusal_events import (
    KEEPS,
    RefusalEvents,
    fresh_refusals,
    fresh_waits,
)
from numapin_operator.nodes.eviction.evictable import consequence
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.moves.notices import notices_of_moves
from numapin_operator.nodes.moves.telling import NobodyTold, Telling
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import METRICS, REFUSALS, WITHOUT_DEVICES, WRITES
from numapin_operator.telemetry.write_results import result_of

LINES_AT_ONCE: Final = 20
"""Lines of one kind about a node that are logged at once; more are logged once a minute."""

NOT_RELEASED: Final = (
    "no enforcer has released it: start its enforcer, or give numapin release --pods the node"
)

_log = logging.getLogger(__name__)


def _limit() -> LogLimit:
    """For the lines of one node, and for those of all when a large cluster is first assigned."""
    return LogLimit(
        at_once=LINES_AT_ONCE, per_second=1 / 60, in_all_at_once=10_000, in_all_per_second=20.0
    )


@dataclass(frozen=True, slots=True)
class NodeLog:
    """Logs what became of each node's assignment.

    A tenant who changes a pod in a loop has its node planned each time, but not each time logged.
    """

    lines: LogLimit = field(default_factory=_limit)

    def written(self, after: AssignmentView) -> None:
        """Log that an assignment was created or changed."""
        if (more := self.lines.admit("written", after.name)) is not None:
            about = {
                "node": after.name,
                "policy": after.spec.policy.name if after.spec.policy else "",
                "generation": after.generation,
                "mode": after.spec.mode,
                "containers": len(after.spec.containers),
                "refused": len(after.spec.refused),
            }
            _log.info("wrote an assignment", extra={**about, **more})

    def deleted(self, node: str) -> None:
        """Log that an assignment was deleted."""
        _log.info("deleted an assignment", extra={"node": node})

    def failed(self, node: str, error: Exception, again_in_seconds: float) -> None:
        """Log that a node could not be brought up to date."""
        if (more := self.lines.admit("failed", node)) is not None:
            about = {"error": str(error), "again_in_seconds": round(again_in_seconds, 1)}
            _log.warning("cannot write an assignment", extra={"node": node, **about, **more})

    def not_released(self, node: str) -> None:
        """Log a node that keeps its CPU sets: no policy is left that could say so."""
        if (more := self.lines.admit("kept", node)) is not None:
            about = {"node": node, "why": NOT_RELEASED}
            _log.warning("a node keeps its CPU sets", extra={**about, **more})


def _ignore(*_: object) -> None:
    """Do nothing."""


def _nobody(_: str) -> str | None:
    """Nobody writes what we do."""
    return None


@dataclass(slots=True)
class Outputs:
    """Where the controller sends what is not a NodeAssignment.

    Attributes:
        statuses: takes each node's outcome.
        events: takes refusals that are new.
        evictor: takes nodes whose refused pods the policy may want evicted.
        meter: counts plans, writes and refusals.
        written: called with each assignment that was created or changed.
        log: logs what became of each.
        telling: tells workloads which CPUs they have.
        refusals: has the refused pods of a node told so.
        assigned: called with each planned node, and with its assignment as it is then.
        other_writer: who else writes the NodeResourceTopology of a node; None if nobody does.
    """

    statuses: StatusWriter
    events: RefusalEvents
    evictor: Evictor
    meter: Meter = field(default_factory=partial(Meter, METRICS))
    written: Callable[[Written], object] = _ignore
    log: NodeLog = field(default_factory=NodeLog)
    telling: Telling = field(default_factory=NobodyTold)
    refusals: Callable[[str], object] = _ignore
    assigned: Callable[[NodePicture], object] = _ignore
    other_writer: Callable[[str], str | None] = _nobody

    def report(self, result: WriteResult) -> None:
        """Log and count a write, and tell those whom it concerns."""
        decision, after = result.decision, result.after
        if after is not None:
            self._report_spec(result, after)
        elif decision.write is Write.DELETE:
            self.log.deleted(result.picture.name)
        if decision.write is not Write.NOTHING:
            self.meter.add(WRITES, decision.write.value, "written")
        self.telling.tell(result.picture.name)
        self.refusals(result.picture.name)
        told = result.picture.memory.waiting
        fresh = (one for one in decision.told_waiting if one.pod.uid not in told)
        if result.picture.is_enforced:
            self.events.inform(map(notice_of_waiting, fresh))

    def report_failure(self, decision: Decision, error: ClientError) -> None:
        """Count a write that failed."""
        self.meter.add(WRITES, decision.write.value, result_of(error))

    def _report_spec(self, result: WriteResult, after: AssignmentView) -> None:
        """Report a spec that was written, and tell pods what is done with them."""
        before = result.picture.assignment.spec if result.picture.assignment else None
        self.written(Written(after.name, after.spec, after.generation, result.planned, result.sent))
        for refusal in fresh_refusals(before.refused if before else (), after.spec.refused):
            self.meter.add(REFUSALS, refusal.reason)
        self.log.written(after)
        if is_enforced(after.spec.mode):
            was_told = before is not None and is_enforced(before.mode)
            self._tell_pods(result.picture, before if was_told else None, after)

    def _tell_pods(
        self, picture: NodePicture, before: NodeAssignmentSpec | None, after: AssignmentView
    ) -> None:
        """Tell pods that a spec refuses, places, resizes and moves what it does so anew."""
        pods = {pod.uid: pod for pod in picture.pods}
        governing = picture.ranked[0] if picture.ranked else None
        for refusal in fresh_refusals(before.refused if before else (), after.spec.refused):
            self.events.offer([refusal], consequence(governing, pods.get(refusal.pod_uid)))
        lacking = lacking_devices(picture)
        if without := lacking.keys() & {one.pod_uid for one in after.spec.containers}:
            self.meter.add(WITHOUT_DEVICES, by=len(without))
        written = notices_of_written(before, after.spec, pods, after.topology, lacking)
        if governing is not None and after.topology is not None:
            written = with_places(written, pods, after.topology, governing.spec)
        moved = notices_of_moves(before, after.spec, after.topology)
        self.events.inform(chain(written, moved))
        self.events.offer(fresh_waits(before, after.spec), KEEPS)
