"""The enforcer's metrics: counted at the end of each pass, read when they are asked for."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from numapin_api.topology import Topology
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import OTHER, Labels, Values
from numapin_daemon.telemetry.process import read_process
from numapin_enforcer.assignment.spec import AssignedSpec
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.exclusivity import Lack
from numapin_enforcer.status.summary import Summary
from numapin_enforcer.telemetry.admissions import admissions
from numapin_enforcer.telemetry.allocation import allocation
from numapin_enforcer.telemetry.samples import Samples
from numapin_enforcer.telemetry.table import (
    DRIFTS,
    ENFORCES,
    FOREIGN_TASKS,
    IN_FORCE_SECONDS,
    METRICS,
    MISPINNED,
    MISPINNED_REASONS,
    PASS_SECONDS,
    WATCH_AGE,
    WRITES,
)

_KNOWN: Final = frozenset(map(str, MISPINNED_REASONS))
_WATCH: Final = ("nodeassignments",)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did, and what it left.

    Attributes:
        began_seconds: when it began; `ended_seconds`: when it ended.
        spec: what is enforced; None while nothing is.
        topology: the hardware.
        tree: the cgroups as read last; None if there are none.
        desired: what each of them must have.
        summary: what the kernel has; None if it could not be read.
        writes: how many writes the kernel made; `refused`: how many it refused.
    """

    began_seconds: float
    ended_seconds: float
    spec: AssignedSpec | None
    topology: Topology
    tree: Tree | None = None
    desired: Mapping[str, Desired] = field(default_factory=dict)
    summary: Summary | None = None
    writes: int = 0
    refused: int = 0


class NodeMetrics:
    """The meter of the enforcer. `passed` belongs to the loop, the rest to any thread.

    Attributes:
        meter: has the values.
    """

    def __init__(
        self,
        samples: Samples,
        drifts: Callable[[], Mapping[str, int]],
        watch_age_seconds: Callable[[], float],
        known: AssignedSpec | None,
    ) -> None:
        """Count nothing yet.

        Args:
            samples: of the containers.
            drifts: how many drifts there were, by cause.
            watch_age_seconds: how long ago the API server was heard last.
            known: what was accepted before this process began, and is not counted again.
        """
        self.meter = Meter(METRICS)
        self._samples, self._drifts, self._age_seconds = samples, drifts, watch_age_seconds
        self._spec = known
        self._last: Pass | None = None
        self._in_force = InForceTimes(known)
        for source in (read_process, self._read_node, self._read_containers):
            self.meter.read_from(source)

    def passed(self, done: Pass) -> None:
        """A pass has ended."""
        self._last = done
        add = self.meter.add
        self.meter.observe(PASS_SECONDS, done.ended_seconds - done.began_seconds)
        if done.writes:
            add(WRITES, "made", by=done.writes)
        if done.refused:
            add(WRITES, "refused", by=done.refused)
        if done.spec is not None and done.spec is not self._spec:
            counts = admissions(self._spec, done.spec, done.topology)
            for (metric, labels), count in counts.items():
                add(metric, *labels, by=count)
            self._spec = done.spec
        for seconds in self._in_force.update(done):
            self.meter.observe(IN_FORCE_SECONDS, seconds)

    def _read_node(self) -> Values:
        last = self._last
        enforced = last.spec if last is not None else None
        return {
            **(allocation(enforced, last.topology) if last is not None and enforced else {}),
            ENFORCES: {(): float(enforced is not None and enforced.mode != "None")},
            DRIFTS: {(cause,): count for cause, count in self._drifts().items()},
            WATCH_AGE: {_WATCH: self._age_seconds()},
        }

    def _read_containers(self) -> Values:
        last = self._last
        if last is None or last.tree is None:
            return self._samples.values()
        self._samples.take(last.tree, last.desired)
        lacks = last.summary.lacks if last.summary is not None else ()
        return {**self._samples.values(), MISPINNED: mispinned(lacks, self._samples.foreign)}


def mispinned(lacks: Sequence[Lack], foreign: int) -> Mapping[Labels, float]:
    """How many containers lack something, by reason."""
    reasons = (str(one.reason) for one in lacks)
    counts: Counter[Labels] = Counter(
        (reason if reason in _KNOWN else OTHER,) for reason in reasons
    )
    counts[FOREIGN_TASKS,] += foreign
    return dict(counts)


class InForceTimes:
    """How long each exclusive container took from its first pass to all of its CPUs."""

    def __init__(self, known: AssignedSpec | None) -> None:
        """Args: containers of `known` are not timed: they may have been in force before."""
        self._since: dict[tuple[str, str], float] = {}
        self._timed = {(one.pod_uid, one.container) for one in known.containers} if known else set()
        self._summary: Summary | None = None

    def update(self, done: Pass) -> list[float]:
        """Take in a pass; returns the times of the containers that it brought into force."""
        if done.spec is None or done.summary is None or done.summary is self._summary:
            return []
        self._summary = done.summary
        named = {(one.pod_uid, one.container): one for one in done.spec.containers}
        times, present = list[float](), set[tuple[str, str]]()
        for one in done.summary.containers:
            key = one.pod_uid, one.container
            if key not in named or not named[key].exclusive:
                continue
            present.add(key)
            since = self._since.setdefault(key, done.began_seconds)
            if one.exclusive and key not in self._timed:
                self._timed.add(key)
                times.append(done.ended_seconds - since)
        self._since = {key: self._since[key] for key in present}
        self._timed &= named.keys()
        return times
