"""The enforcer's metrics: counted at the end of each pass, read when they are asked for."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import OTHER, Labels, Values
from numapin_daemon.telemetry.process import read_process
from numapin_daemon.telemetry.process_table import WATCH_AGE
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.lack import Lack
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.telemetry.admissions import admissions
from numapin_enforcer.telemetry.allocation import allocation
from numapin_enforcer.telemetry.node_traces import NodeTraces
from numapin_enforcer.telemetry.passes import InForceTimes
from numapin_enforcer.telemetry.samples.containers import Samples
from numapin_enforcer.telemetry.table import (
    DRIFTS,
    ENFORCES,
    IN_FORCE_SECONDS,
    METRICS,
    MISPINNED,
    MISPINNED_REASONS,
    PASS_SECONDS,
    WRITES,
)

_KNOWN: Final = frozenset(map(str, MISPINNED_REASONS))
_WATCH: Final = ("nodeassignments",)


class NodeMetrics:
    """The meter of the enforcer. `passed` belongs to the loop, the rest to any thread.

    Attributes:
        meter: has the values.
        traces: receives each pass; None if no traces are wanted.
    """

    def __init__(
        self,
        samples: Samples,
        drifts: Callable[[], Mapping[str, int]],
        watch_age_seconds: Callable[[], float],
        known: NodeAssignmentSpec | None,
    ) -> None:
        """Count nothing yet.

        Args:
            samples: of the containers.
            drifts: how many drifts there were, by cause.
            watch_age_seconds: how long ago the API server was heard last.
            known: what was accepted before this process began, and is not counted again.
        """
        self.meter = Meter(METRICS)
        self.traces: NodeTraces | None = None
        self._samples, self._drifts, self._age_seconds = samples, drifts, watch_age_seconds
        self._spec = known
        self._last: Pass | None = None
        self._lacks: Sequence[Lack] = ()
        self._in_force = InForceTimes(known)
        for source in (read_process, self._read_node, self._read_containers):
            self.meter.read_from(source)

    def passed(self, done: Pass, summary: Summary | None) -> None:
        """A pass has ended; `summary` is what the kernel has, None if it could not be read."""
        self._last, self._lacks = done, summary.lacks if summary is not None else ()
        add = self.meter.add
        self.meter.observe(PASS_SECONDS, done.ended_seconds - done.began_seconds)
        if made := len(done.result.made):
            add(WRITES, "made", by=made)
        if refused := len(done.result.failures):
            add(WRITES, "refused", by=refused)
        if done.spec is not None and done.spec is not self._spec:
            counts = admissions(self._spec, done.spec, done.topology)
            for (metric, labels), count in counts.items():
                add(metric, *labels, by=count)
            self._spec = done.spec
        in_force = self._in_force.update(done, summary)
        for one in in_force:
            self.meter.observe(IN_FORCE_SECONDS, one.until_seconds - one.since_seconds)
        if self.traces is not None:
            self.traces.passed(done, in_force)

    def _read_node(self) -> Values:
        last = self._last
        enforced = last.spec if last is not None else None
        return {
            **(allocation(enforced, last.topology) if last is not None and enforced else {}),
            ENFORCES: {(): float(enforced is not None and is_enforced(enforced.mode))},
            DRIFTS: {(cause,): count for cause, count in self._drifts().items()},
            WATCH_AGE: {_WATCH: self._age_seconds()},
        }

    def _read_containers(self) -> Values:
        last = self._last
        if last is None or last.result.tree is None:
            return self._samples.values()
        self._samples.take(last.result.tree, last.result.desired)
        found = mispinned(self._lacks, self._samples.foreign)
        return {**self._samples.values(), MISPINNED: found}


def mispinned(lacks: Sequence[Lack], foreign: int) -> Mapping[Labels, float]:
    """How many containers lack something, by reason."""
    reasons = (str(one.reason) for one in lacks)
    counts: Counter[Labels] = Counter(
        (reason if reason in _KNOWN else OTHER,) for reason in reasons
    )
    counts[str(Reason.FOREIGN_TASKS),] += foreign
    return dict(counts)
