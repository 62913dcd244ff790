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

LINES_AT_ONCE: Final = 20
"""Lines of one kind about a node that are logged at once; more are logged once a minute."""

NOT_RELEASED: Final = (
    "no enforcer has released it: start its enforcer, or release it by hand (docs/operations.md)"
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
    """

    statuses: StatusWriter
    events: RefusalEvents
    evictor: Evictor
    meter: Meter = field(default_factory=partial(Meter, METRICS))
    written: Callable[[Written], object] = _ignore
    log: NodeLog = field(default_factory=NodeLog)
    telling: Telling = field(default_factory=NobodyTold)
