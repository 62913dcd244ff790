"""`python -m numapin_campaigns chaos`: a chaos run on a lab of its own."""

import argparse
from typing import Final

from numapin_campaigns.chaos.plan import ChaosPlan, make_plan
from numapin_campaigns.chaos.run import run
from numapin_campaigns.frame.command import Campaign
from numapin_campaigns.frame.labs import lab_on_this_machine


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
    add_from_source(parser)


def add_from_source(parser: argparse.ArgumentParser) -> None:
    """Add the option for a lab without images."""
    parser.add_argument(
        "--from-source",
        action="store_true",
        help="run operator and enforcer as processes of this checkout, not as pods from images",
    )


def _plan(seed: int, options: argparse.Namespace) -> ChaosPlan:
    return make_plan(seed, options.pods, spare_enforcer=options.spare_enforcer)


CHAOS: Final = Campaign(
    "chaos",
    _plan,
    lambda plan: f"--seed {plan.seed} --pods {plan.pods}",
    lab_on_this_machine,
    run,
)
