"""Where the controller sends what is not a NodeAssignment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from numapin_daemon.telemetry.meter import Meter
from numapin_operator.nodes.eviction import Evictor
from numapin_operator.nodes.moves.telling import NobodyTold, Telling
from numapin_operator.nodes.refusal_events import RefusalEvents
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import METRICS


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
        telling: tells workloads which CPUs they have.
    """

    statuses: StatusWriter
    events: RefusalEvents
    evictor: Evictor
    meter: Meter = field(default_factory=partial(Meter, METRICS))
    written: Callable[[Written], object] = _ignore
    telling: Telling = field(default_factory=NobodyTold)
