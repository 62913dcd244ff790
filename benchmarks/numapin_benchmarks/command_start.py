"""Time until the `numapin` command has answered what needs no cluster: help, version, completion.

    python -m numapin_benchmarks.command_start [--repeat N] [--against CHECKOUT]

Each command line is a process of its own, as at each TAB. They take turns with an interpreter that
does nothing, and with the same command of another checkout, so that what else runs on the machine
disturbs all of them alike. Printed are milliseconds: the shortest run, the median, the longest.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from numapin_benchmarks.surroundings import load, progress

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("crds", "daemon", "client", "operator", "enforcer", "cli", "page")
COMMANDS: Final = (
    "--version",
    "--help",
    "get --help",
    "completion candidates -- ex",
    "completion candidates -- plan --",
)
_RUN: Final = "import sys; from numapin_cli.main import main; sys.exit(main())"
_NOTHING: Final = "an interpreter that does nothing"


def main() -> None:
    """Run everything, then print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=20, metavar="N", help="runs of each")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="measure this one too")
    options = parser.parse_args()
    measured = {(_NOTHING, ""): list[float]()}
    checkouts = {"this": ROOT} | ({"other": options.against} if options.against else {})
    measured |= {(command, name): [] for command in COMMANDS for name in checkouts}
    for number in range(options.repeat + 1):
        progress(f"run {number} of {options.repeat}, load {load()}")
        for (command, name), runs in measured.items():
            taken = _timed(command, checkouts.get(name))
            if number:  # the first one reads files that the kernel has not cached
                runs.append(taken)
    for (command, name), runs in measured.items():
        low, middle, high = min(runs), statistics.median(runs), max(runs)
        print(f"{command:34} {name:6} {low:6.0f} {middle:6.0f} {high:6.0f}")


def _timed(command: str, checkout: Path | None) -> float:
    """Milliseconds that a process takes from its start to its end."""
    code, words = (_RUN, command.split()) if checkout else ("pass", [])
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | _path(checkout),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return (time.perf_counter() - begun) * 1000


def _path(checkout: Path | None) -> Mapping[str, str]:
    """Where the interpreter finds the sources of a checkout, before those that are installed."""
    if checkout is None:
        return {}
    return {"PYTHONPATH": os.pathsep.join(str(checkout.resolve() / one) for one in SOURCES)}


if __name__ == "__main__":
    main()
