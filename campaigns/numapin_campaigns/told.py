"""Does a workload see that CPUs will leave it before they do? Each of many moves is checked.

A container is moved back and forth between the two NUMA nodes of a virtual machine with a real
kubelet. A process in it watches its file of the downward API with inotify and asks the kernel each
millisecond which CPUs it may use. It must see the notice of every move before its CPU leaves, and
never share one with a neighbour; no write of a move may count as an external change. The machine is
emulated, and its kubelet slower than a real one.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_campaigns.frame.command import Campaign, add_keep
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.frame.labs import vm_lab
from numapin_campaigns.frame.plain import PlainReport
from numapin_campaigns.frame.report import spread
from numapin_campaigns.workload.back_and_forth import BackAndForth
from numapin_campaigns.workload.notice import Followed, annotating
from numapin_lab.components.build import Say
from numapin_lab.vm.running_lab import RunningVmLab

SHOW_EVERY: Final = 10


@dataclass(frozen=True)
class ToldPlan:
    """How often the container is moved, and with which `dynamic.notice`."""

    moves: int
    notice: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this campaign."""
    add_keep(parser)
    parser.add_argument("--moves", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--notice", default="2s", help="`dynamic.notice` (default: %(default)s)")


def _run(lab: RunningVmLab, plan: ToldPlan, _: Path, progress: Say) -> PlainReport:
    """Move the container so often, or until Ctrl-C."""
    rounds, made, began = BackAndForth(lab, plan.notice), 0, time.monotonic()
    with annotating(lab):
        with rounds.followed():
            try:
                for made in range(1, plan.moves + 1):
                    rounds.move((made - 1) % 2)
                    if made % SHOW_EVERY == 0:
                        progress(f"told: {made} of {plan.moves} moves")
            except KeyboardInterrupt:
                made -= 1
        found = rounds.result()
    assignment = lab.assignment()
    assert assignment is not None
    assert assignment.status is not None
    return PlainReport(
        seed=0,
        verdict=Verdict(tuple(violations(found))),
        problems=list(problems(found, made, assignment.status.drift_causes)),
        seconds=time.monotonic() - began,
        own={"moves": made, "notice": plan.notice} | figures(found),
    )


def violations(found: Followed) -> Iterator[Mapping[str, Any]]:
    """CPUs that left without a notice, or that another container could use as well."""
    for one in found.departures:
        if one.announced_at is None:
            yield {"left without a notice": str(one.cpus), "at": round(one.left_at, 3)}
    for each in found.shared:
        yield {"shared": str(each.cpus), "at": round(each.at, 3)}


def problems(found: Followed, made: int, causes: Mapping[str, int]) -> Iterator[str]:
    """Moves that the workload did not see, and writes that count as external changes."""
    if (seen := len(found.departures)) < made:
        yield f"CPUs left {seen} times in {made} moves"
    for cause, count in causes.items():
        yield f"{count} external changes were counted: {cause}"


def figures(found: Followed) -> dict[str, Any]:
    """How long before its CPUs left the workload knew it."""
    seconds = sorted(one.notice_seconds for one in found.departures)
    return {
        "told": sum(one.announced_at is not None for one in found.departures),
        "noticeSeconds": {"least": round(min(seconds, default=0.0), 2)} | spread(seconds),
        "asked": found.asked,
        "longestGapSeconds": round(found.longest_gap_seconds, 3),
    }


TOLD: Final = Campaign(
    "told",
    lambda _, options: ToldPlan(options.moves, options.notice),
    lambda plan: f"--moves {plan.moves} --notice {plan.notice}",
    vm_lab,
    _run,
)
