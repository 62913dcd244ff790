"""A chaos run with moves, from its first round to its report."""

import time
from pathlib import Path
from typing import Final

from numapin_campaigns.frame.downtime import unnoticed
from numapin_campaigns.moves.evidence import Evidence, announcements
from numapin_campaigns.moves.judgement import departures, judge
from numapin_campaigns.moves.node import Node, Watch
from numapin_campaigns.moves.plan import MovesPlan
from numapin_campaigns.moves.report import MovesReport
from numapin_campaigns.moves.rounds import GuestClock, Rounds
from numapin_campaigns.parts.guest import GuestParts
from numapin_campaigns.workload.notice import start_annotating
from numapin_lab.components.build import Say
from numapin_lab.vm.running_lab import RunningVmLab

NOTICE_SECONDS: Final = 3
TOLD_SECONDS: Final = NOTICE_SECONDS + 1.0
"""CPUs leave so long after the API server has the annotation. Source: docs/notice.md."""


def run(lab: RunningVmLab, plan: MovesPlan, output: Path, progress: Say) -> MovesReport:
    """Execute a plan on a lab with nothing on it.

    Args:
        lab: it has no pod and no policy.
        plan: what to do.
        output: a folder for what workloads and parts have written down.
        progress: takes a line now and then.

    Raises:
        LabError: the node was not ready for the first round.
    """
    parts, node = GuestParts(lab, start_annotating(lab)), Node(lab, f"{NOTICE_SECONDS}s")
    parts.start_standby()
    node.fill()
    followers = node.followers()
    for follower in followers.values():
        follower.start()
    rounds, began = Rounds(node, parts, GuestClock(lab), progress), time.monotonic()
    with Watch(lab) as watch:
        rounds.make(plan, watch)
    seconds = time.monotonic() - began
    progress("chaos: reading what was written down")
    evidence = Evidence.collect(lab, followers, parts)
    evidence.write(output)
    return _report(plan, rounds, watch, evidence, seconds)


def _report(
    plan: MovesPlan, rounds: Rounds, watch: Watch, evidence: Evidence, seconds: float
) -> MovesReport:
    parts, witnesses = rounds.parts, evidence.witnesses(rounds.made)
    noticed = evidence.noticed_seconds(parts.downtimes)
    announced = announcements(watch.notices, rounds.clock)
    status = watch.assignment.status if watch.assignment else None
    logged = evidence.complaints(parts.downtimes)
    return MovesReport(
        seed=plan.seed,
        plan=plan,
        rounds=rounds.made,
        witnesses=witnesses,
        verdict=judge(witnesses, announced, TOLD_SECONDS),
        departures=departures(witnesses),
        downtimes=parts.downtimes,
        kills=parts.kills,
        drift_causes=status.drift_causes if status else {},
        noticed_seconds=noticed,
        problems=[*rounds.problems, *unnoticed(noticed), *logged],
        warnings=evidence.warnings(),
        seconds=seconds,
    )
