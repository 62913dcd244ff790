"""`python -m numapin_lab chaos`: a chaos run on a lab of its own, and its report."""

import argparse
import json
import secrets
from pathlib import Path
from typing import Final

from numapin_campaigns.chaos.plan import ChaosPlan, make_plan
from numapin_campaigns.chaos.report import Report, summary
from numapin_campaigns.chaos.run import run as carry_out
from numapin_campaigns.parts.pods import KUBELET
from numapin_lab.components.build import Say, say
from numapin_lab.installed.running import running
from numapin_lab.lifecycle import LabFolder

FILE: Final = "chaos.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run."""
    parser.add_argument(
        "--seed",
        type=int,
        metavar="NUMBER",
        help="seed of everything that is random; repeats a run (default: a new one)",
    )
    parser.add_argument(
        "--pods",
        type=int,
        default=200,
        metavar="NUMBER",
        help="how many pods to start in all (default: %(default)s)",
    )
    parser.add_argument(
        "--spare-enforcer",
        action="store_true",
        help="do not kill the enforcer, to see whether its memory grows",
    )
    parser.add_argument(
        "--from-source",
        action="store_true",
        help="run operator and enforcer as processes of this checkout, not as pods from images",
    )
    parser.add_argument("--keep", action="store_true", help="leave the lab running at the end")


def planned(options: argparse.Namespace) -> ChaosPlan:
    """The plan that the options ask for."""
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    return make_plan(seed, options.pods, spare_enforcer=options.spare_enforcer)


def run(folder: LabFolder, plan: ChaosPlan, keep: bool, progress: Say = say) -> bool:
    """Bring the lab up, run, print and write the report, take the lab down.

    Returns:
        True if there was no violation and no problem.

    Raises:
        LabError: the run was not finished; the lab stays up, so that its logs can be read.
    """
    progress(f"chaos: {plan.pods} pods; to repeat this run: --seed {plan.seed} --pods {plan.pods}")
    lab = running(folder.up(kubelet=KUBELET if folder.pods else None))
    lab.clear()
    report = carry_out(lab, plan, folder.path, progress)
    write(report, folder.path / FILE)
    print(summary(report))
    lab.clear()
    if not keep:
        folder.down()
    return not (report.verdict.violations or report.problems or report.unreverted)


def write(report: Report, path: Path) -> None:
    """Write the figures as JSON."""
    path.write_text(json.dumps(report.to_json(), indent=1) + "\n")
