"""The command of a campaign: its seed, a lab of its own, its report."""

import argparse
import json
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from numapin_campaigns.frame.report import Report
from numapin_lab.components.build import Say, say
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import RunningLab

Plan = TypeVar("Plan")
Lab = TypeVar("Lab", bound=RunningLab)

SEEDS: Final = 1_000_000
"""A new seed is one of so many."""


@dataclass(frozen=True)
class Campaign(Generic[Lab, Plan]):
    """What a seed decides and a lab carries out.

    Attributes:
        name: as on the command line.
        plan: what a seed decides under these options. Raises LabError for options that contradict
            each other.
        repeat: the options that decide this plan.
        lab: a lab with nothing on it; whether to leave it up at the end.
        run: executes a plan; takes a folder for what is written down. Raises LabError if the run
            was not finished.
    """

    name: str
    plan: Callable[[int, argparse.Namespace], Plan]
    repeat: Callable[[Plan], str]
    lab: Callable[[LabFolder, bool], AbstractContextManager[Lab]]
    run: Callable[[Lab, Plan, Path, Say], Report[Any]]

    def planned(self, options: argparse.Namespace) -> Plan:
        """The plan that the options ask for, of a new seed if they name none."""
        seed = chosen_seed() if options.seed is None else options.seed
        return self.plan(seed, options)

    def carry_out(self, folder: LabFolder, plan: Plan, keep: bool, progress: Say = say) -> bool:
        """Bring the lab up, run, print and write the report, and take the lab down.

        Returns:
            True if there was no violation and no problem.

        Raises:
            LabError: the run was not finished.
        """
        progress(f"{self.name}: to repeat this run: {self.repeat(plan)}")
        with self.lab(folder, keep) as lab:
            report = self.run(lab, plan, folder.path, progress)
            write(report, folder.path / f"{self.name}.json")
            print(report.summary())
        return report.good


def chosen_seed() -> int:
    """A new seed."""
    return secrets.randbelow(SEEDS)


def write(report: Report[Any], path: Path) -> None:
    """Write the figures as JSON."""
    path.write_text(json.dumps(report.to_json(), indent=1) + "\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a campaign with a seed."""
    parser.add_argument(
        "--seed",
        type=int,
        metavar="NUMBER",
        help="seed of everything that is random; repeats a run (default: a new one)",
    )
    add_keep(parser)


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add the option that every campaign on a lab has."""
    parser.add_argument("--keep", action="store_true", help="leave the lab running at the end")
