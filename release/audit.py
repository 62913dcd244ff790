#!/usr/bin/env python3
"""Ask which packages that are shipped have known vulnerabilities.

    .venv/bin/python release/audit.py [LOCK]...

Each lock names what an image, the plug-in of kubectl or the build of an image contains, in exact
versions. pip-audit asks PyPI about each. The exit status is 0 if all were asked about and none has
a known vulnerability, 1 if one has, and 3 if some could not be asked about: an index that is a
mirror, say, knows no vulnerabilities. pip-audit itself ends with 0 then.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOCKS: Final = (*sorted((ROOT / "images").glob("*.lock")), ROOT / "release/kubectl-plugin.lock")
FOUND: Final = 1
NOT_ASKED: Final = 3
NAMED: Final = 3
"""Packages that could not be asked about and are named; of the others the number is said."""

PIP_AUDIT: Final = (
    *("pip_audit", "--format=json", "--progress-spinner=off", "--disable-pip"),
    *("--require-hashes", "--requirement"),
)


@dataclass(frozen=True)
class Answer:
    """What is known of the packages of one lock."""

    asked: int
    found: tuple[str, ...] = ()
    """A line for each vulnerability."""

    not_asked: tuple[str, ...] = ()
    """Why some, or all, could not be asked about."""

    @property
    def status(self) -> int:
        """The exit status: a vulnerability says more than a gap."""
        return FOUND if self.found else NOT_ASKED if self.not_asked else 0


def read(output: str, errors: str) -> Answer:
    """Read what pip-audit has printed. One that asked about nothing has audited nothing."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = errors.strip().splitlines()
        return Answer(0, (), (said[-1] if said else "pip-audit has printed nothing",))
    asked = [one for one in packages if "skip_reason" not in one]
    skipped = [str(one["skip_reason"]) for one in packages if "skip_reason" in one]
    found = tuple(_line(one, bug) for one in asked for bug in one["vulns"])
    if not packages:
        return Answer(0, (), ("the lock has no package",))
    return Answer(len(asked), found, tuple(skipped))


def _line(package: Any, bug: Any) -> str:
    fixed = ", ".join(bug["fix_versions"]) or "no release"
    return f"{package['name']} {package['version']}: {bug['id']}, fixed in {fixed}"


def audit(lock: Path) -> Answer:
    """Ask about each package of a lock."""
    answer = subprocess.run(
        [sys.executable, "-m", *PIP_AUDIT, lock],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return read(answer.stdout, answer.stderr)


def say(lock: str, answer: Answer) -> None:
    """Print what is known."""
    print(f"{lock}: asked about {answer.asked}, {len(answer.found)} known vulnerabilities")
    for line in answer.found:
        print(f"  {line}")
    for why in answer.not_asked[:NAMED]:
        print(f"  NOT AUDITED: {why}")
    if len(answer.not_asked) > NAMED:
        print(f"  NOT AUDITED: {len(answer.not_asked) - NAMED} more")


def main() -> int:
    """Audit all locks; the status is that of the worst."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lock", nargs="*", type=Path, default=LOCKS)
    statuses = set()
    for lock in parser.parse_args().lock:
        answer = audit(lock)
        say(lock.name, answer)
        statuses.add(answer.status)
    return FOUND if FOUND in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
