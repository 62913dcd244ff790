"""Reports each pass: in the status, and to the probes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from numapin_daemon.probes.health import LoopHealth
from numapin_enforcer.assignment.either_form import Judged
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.facts import Facts, evidence_of
from numapin_enforcer.status.in_force.summary import Summarizer, Summary
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.report import build_report, failed_report
from numapin_enforcer.status.state import States


@dataclass(eq=False)
class StatusReporter:
    """Publishes what each pass leads to."""

    publisher: Publisher
    health: LoopHealth
    on_pass: tuple[Callable[[Pass, Summary | None], object], ...] = ()
    """Called at the end of each pass, with what the kernel has; must be quick."""
    _last: Summary | None = field(default=None, init=False)
    """Of the last pass; None if the cgroups could not be read."""
    _summarized: tuple[tuple[object, ...], Summary] | None = field(default=None, init=False)
    _summarizer: Summarizer = field(default_factory=Summarizer, init=False)

    def report(self, one: Pass, facts: Facts, states: States) -> None:
        """A pass has ended: publish the status, unless it changes in a moment."""
        self._last = self._summary(one, facts, states)
        report = build_report(one, facts, states, self._last)
        if not any(state.finishes_soon for state in states.values()):
            self.publisher.publish(report)
        if one.resynced:
            self.publisher.passed()
        problems = {**facts.problems, "status": self.publisher.problem}
        self.health.passed(report.missing(problems))

    def count(self, one: Pass, ended_seconds: float) -> None:
        """Have a pass counted that was reported; it may be kept until the next one."""
        ended = replace(one, ended_seconds=ended_seconds, body=None)
        for call in self.on_pass:
            call(ended, self._last)

    def failed(self, judged: Judged, error: Exception) -> None:
        """A pass failed unexpectedly: what was reported stays, and the conditions say why."""
        report = failed_report(judged, error)
        self.publisher.publish(report)
        self.health.passed(report.missing({}))

    def _summary(self, one: Pass, facts: Facts, states: States) -> Summary | None:
        """What the kernel has; None if it could not be read. Computed when something changed."""
        tree, naming = one.result.tree, one.naming
        if tree is None or naming is None:
            return None
        if one.spec is None:
            return Summary()
        found = evidence_of(one, facts, states, tree, naming)
        arguments = (one.spec, tree, one.wanted, naming, found)
        if self._summarized is None or self._summarized[0] != arguments:
            self._summarized = (arguments, self._summarizer.summarize(*arguments))
        return self._summarized[1]
