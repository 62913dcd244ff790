"""`python -m numapin_campaigns chaos`: a chaos run on a lab of its own."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numapin_campaigns.chaos.plan import ChaosPlan, make_plan
from numapin_campaigns.chaos.run import run
from numapin_campaigns.frame.command import Campaign
from numapin_campaigns.parts.pods import KUBELET
from numapin_lab.installed.running import running
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import RunningLab


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run with pods."""
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


def _plan(seed: int, options: argparse.Namespace) -> ChaosPlan:
    return make_plan(seed, options.pods, spare_enforcer=options.spare_enforcer)


@contextmanager
def _lab(folder: LabFolder, keep: bool) -> Iterator[RunningLab]:
    """After an error the lab stays up, so that its logs can be read."""
    lab = running(folder.up(kubelet=KUBELET if folder.pods else None))
    lab.clear()
    yield lab
    lab.clear()
    if not keep:
        folder.down()


CHAOS: Final = Campaign(_plan, lambda plan: f"--seed {plan.seed} --pods {plan.pods}", _lab, run)
