"""`python -m numapin_campaigns chaos --moves`: a run in a virtual machine of its own."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numapin_campaigns.frame.command import Campaign
from numapin_campaigns.moves.plan import LEAST_ROUNDS, MovesPlan, make_moves_plan
from numapin_campaigns.moves.run import run
from numapin_lab.cluster import VmCluster
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab

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


@contextmanager
def _lab(folder: LabFolder, keep: bool) -> Iterator[RunningVmLab]:
    """It is taken down at the end, also on Ctrl-C.

    Raises:
        LabError: the folder has another lab.
    """
    known = folder.state()
    if known and not known.vm:
        raise LabError(f"the node of {folder.path} is this machine; take the lab down")
    try:
        cluster = folder.up()
        assert isinstance(cluster, VmCluster)
        lab = RunningVmLab(cluster)
        lab.clear()
        yield lab
    finally:
        if not keep:
            folder.down()


MOVES: Final = Campaign(
    _plan, lambda plan: f"--moves --seed {plan.seed} --rounds {len(plan.rounds)}", _lab, run
)
