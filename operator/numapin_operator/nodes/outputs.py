"""Where the controller sends what is not a NodeAssignment."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from numapin_daemon.log_limit import LogLimit
from numapin_daemon.telemetry.meter import Meter
from numapin_operator.nodes.eviction import Evictor
from numapin_operator.nodes.moves.telling import NobodyTold, Telling
from numapin_operator.nodes.refusal_events import RefusalEvents
from numapin_operator.observe.records import AssignmentView
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import METRICS

WRITES_AT_ONCE: Final = 20
"""Writes of one node that are logged at once; more are logged once a minute."""

_log = logging.getLogger(__name__)


def _limit() -> LogLimit:
    """For the writes of one node, and for those of all when a large cluster is first assigned."""
    return LogLimit(
        at_once=WRITES_AT_ONCE, per_second=1 / 60, in_all_at_once=10_000, in_all_per_second=20.0
    )


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Logs which assignments were written.

    A tenant who resizes a pod in a loop causes a write each time, but not a line.
    """

    lines: LogLimit = field(default_factory=_limit)

    def note(self, after: AssignmentView) -> None:
        """Log that an assignment was written, unless that was logged often lately."""
        if (more := self.lines.admit(after.name)) is not None:
            about = {
                "node": after.name,
                "policy": after.spec.policy.name if after.spec.policy else "",
                "generation": after.generation,
                "mode": after.spec.mode,
                "containers": len(after.spec.containers),
                "refused": len(after.spec.refused),
            }
            _log.info("wrote an assignment", extra={**about, **more})


def _ignore(*_: object) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Outputs:
    """Where the controller sends what is not a NodeAssignment.

    Attributes:
        statuses: takes each node's outcome.
        events: takes refusals that are new.
        evictor: takes nodes whose refused pods the policy may want evicted.
        meter: counts plans, writes and refusals.
        written: called with each assignment that was created or changed.
        write_log: logs each such assignment.
        telling: tells workloads which CPUs they have.
    """

    statuses: StatusWriter
    events: RefusalEvents
    evictor: Evictor
    meter: Meter = field(default_factory=partial(Meter, METRICS))
    written: Callable[[Written], object] = _ignore
    write_log: WriteLog = field(default_factory=WriteLog)
    telling: Telling = field(default_factory=NobodyTold)
