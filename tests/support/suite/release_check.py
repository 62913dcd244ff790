"""Run what no automatic run repeats, and write what came of it into docs/release-check.md.

    PYTHONPATH=tests python -m support.suite.release_check [NAME ...]

Without names everything is run, one after the other; the page has the last result of each check,
and is written after each one.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from support.suite.page import between_marks
from support.suite.streams import ROOT

PAGE: Final = ROOT / "docs" / "release-check.md"
HEAD: Final = (
    "| check | what it shows | result | date | commit | minutes |",
    "|---|---|---|---|---|---|",
)
NOT_RUN: Final = "not run"
OLDEST, NEWEST = "1.30", "1.37"


@dataclass(frozen=True)
class Check:
    """A command, and what is shown when its exit status is 0."""

    name: str
    shows: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


CHECKS: Final = (
    Check("before-release", "tests that `make test` leaves out", ("make", "before-release")),
    Check(
        "steps",
        "operator, enforcer and standby killed at each step of a resize and of a move",
        ("make", "steps"),
    ),
    Check("systemd", "a node with systemd as process 1 and as cgroup driver", ("make", "systemd")),
    Check(
        "newer-kernel",
        "the tests in virtual machines on the kernel of Debian's backports",
        ("make", "newer-kernel"),
    ),
    Check("skew", f"Kubernetes {OLDEST} and {NEWEST}", ("make", "skew")),
    *(
        Check(
            f"chaos-{number}",
            "no exclusive CPU is shared while each part is killed (a new seed)",
            ("make", "chaos"),
        )
        for number in (1, 2, 3)
    ),
    Check("chaos-moves", "the same while containers move", ("make", "chaos"), {"MOVES": "1"}),
    Check("told", "a workload is told before a CPU leaves it, 100 moves", ("make", "told")),
    Check("hostile", "an hour of random valid and hostile objects", ("make", "hostile")),
    Check("histories", "10,000 random histories of each kind", ("make", "histories")),
    Check("bare-machine", "the README's commands on a new Debian", ("lab/bare-machine",)),
    Check("images-compare", "images that are built twice are equal", ("make", "images-compare")),
)


@dataclass(frozen=True)
class Result:
    """What came of a check, as the page has it."""

    text: str = NOT_RUN
    date: str = ""
    commit: str = ""
    minutes: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it ran, and its exit status was not 0."""
        return self.text not in {NOT_RUN, "passed"}


def read_results(page: str) -> dict[str, Result]:
    """The results on the page, by name of check."""
    rows = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `"))
    cells = ([cell.strip() for cell in row] for row in rows if len(row) >= 3)
    return {row[0].strip("`"): Result(*row[2:6]) for row in cells}


def with_results(page: str, checks: Sequence[Check], results: Mapping[str, Result]) -> str:
    """The page with a row for each check.

    Raises:
        ValueError: it has no place for them.
    """
    return between_marks(page, "results", (*HEAD, *_rows(checks, results)))


def _rows(checks: Sequence[Check], results: Mapping[str, Result]) -> Iterator[str]:
    for one in checks:
        last = results.get(one.name, Result())
        cells = (f"`{one.name}`", one.shows, last.text, last.date, last.commit, last.minutes)
        yield f"| {' | '.join(cells)} |"


def commit_of(root: Path) -> str:
    """The commit that is checked out, and whether files differ from it, but for our page."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    differs = [line for line in changed.splitlines() if not line.endswith(PAGE.name)]
    return git("rev-parse", "--short=8", "HEAD") + (" and changes" if differs else "")


def run(check: Check, root: Path) -> Result:
    """Run one check to its end; what it prints is not kept."""
    commit, began = commit_of(root), time.monotonic()
    environment = {**os.environ, **check.environment}
    status = subprocess.run(check.command, cwd=root, env=environment, check=False).returncode
    text = "passed" if status == 0 else f"FAILED (exit status {status})"
    minutes = f"{(time.monotonic() - began) / 60:.0f}"
    return Result(text, datetime.now(UTC).strftime("%Y-%m-%d"), commit, minutes)


def main(arguments: Sequence[str], checks: Sequence[Check] = CHECKS, page: Path = PAGE) -> int:
    """Run the named checks; returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="make release-check", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these checks")
    names = parser.parse_args(arguments).names
    known = {one.name: one for one in checks}
    if unknown := sorted(set(names) - known.keys()):
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(known)}")
    failed = []
    for count, name in enumerate(names or known, start=1):
        print(f"== {name} ({count} of {len(names or known)})", flush=True)
        result = run(known[name], ROOT)
        print(f"== {name}: {result.text} after {result.minutes} minutes", flush=True)
        text = page.read_text(encoding="utf-8")
        results = read_results(text) | {name: result}
        page.write_text(with_results(text, checks, results), encoding="utf-8")
        if result.has_failed:
            failed.append(name)
    print(f"== failed: {', '.join(failed)}" if failed else "== all passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
