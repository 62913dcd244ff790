"""`python -m numapin_campaigns chaos --moves`: a run in a virtual machine of its own."""

import argparse
from typing import Final

from numapin_campaigns.frame.command import Campaign
from numapin_campaigns.frame.labs import vm_lab
from numapin_campaigns.moves.plan import LEAST_ROUNDS, MovesPlan, make_moves_plan
from numapin_campaigns.moves.run import run
from numapin_lab.errors import LabError

ROUNDS: Final = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run with moves."""
    parser.add_argument(
        "--moves",
        action="store_true",
        help="move and resize containers in a virtual machine with two NUMA nodes instead",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="NUMBER",
        help=f"with --moves: how many moves and resizes, at least {LEAST_ROUNDS} "
        "(default: %(default)s)",
    )


def _plan(seed: int, options: argparse.Namespace) -> MovesPlan:
    if options.spare_enforcer:
        raise LabError("--moves does not go with --spare-enforcer")
    if options.rounds < LEAST_ROUNDS:
        raise LabError(f"--rounds must be at least {LEAST_ROUNDS}, for each kind of fault")
    return make_moves_plan(seed, options.rounds)


MOVES: Final = Campaign(
    "chaos",
    _plan,
    lambda plan: f"--moves --seed {plan.seed} --rounds {len(plan.rounds)}",
    vm_lab,
    run,
)
