"""`python -m numapin_lab chaos --moves`: a run on a lab of its own, and its report."""

import argparse
import json
import secrets
from typing import Final

from numapin_campaigns.moves.plan import LEAST_ROUNDS, MovesPlan, make_moves_plan
from numapin_campaigns.moves.report import summary
from numapin_campaigns.moves.run import run as carry_out
from numapin_lab.cluster import VmCluster
from numapin_lab.components.build import Say, say
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab

FILE: Final = "chaos.json"
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


def planned(options: argparse.Namespace) -> MovesPlan:
    """The plan that the options ask for.

    Raises:
        LabError: too few rounds, or options of the run with pods.
    """
    if options.spare_enforcer:
        raise LabError("--moves does not go with --spare-enforcer")
    if options.rounds < LEAST_ROUNDS:
        raise LabError(f"--rounds must be at least {LEAST_ROUNDS}, for each kind of fault")
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    return make_moves_plan(seed, options.rounds)


def run(folder: LabFolder, plan: MovesPlan, keep: bool, progress: Say = say) -> bool:
    """Bring the lab up, run, print and write the report, and take the lab down, also on Ctrl-C.

    Returns:
        True if there was no violation and no problem.

    Raises:
        LabError: the folder has another lab, or this one was not ready for the first round.
    """
    known = folder.state()
    if known and not known.vm:
        raise LabError(f"the node of {folder.path} is this machine; take the lab down")
    rounds = len(plan.rounds)
    progress(
        f"chaos: {rounds} rounds; to repeat this run: --moves --seed {plan.seed} --rounds {rounds}"
    )
    try:
        cluster = folder.up()
        assert isinstance(cluster, VmCluster)
        lab = RunningVmLab(cluster)
        lab.clear()
        report = carry_out(lab, plan, folder.path, progress)
        (folder.path / FILE).write_text(json.dumps(report.to_json(), indent=1) + "\n")
        print(summary(report))
    finally:
        if not keep:
            folder.down()
    return report.good
