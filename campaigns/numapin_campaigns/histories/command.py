"""A long search for a history of a node in which a write of the enforcer breaks a law.

Each seed is a history: pods and containers come and go, runtimes and users write cgroups, specs
follow one another, writes fail, the standby stands in. It is played with the real reconciler on the
kernel model, and judged after every single write by rules that do not use the planner. The first
violation is printed as short as it can be, as Python that belongs in
tests/unit/enforcer/histories/test_histories.py, and ends the search with status 1.

With --state a search goes on where the last one with that file ended.
"""

import argparse
import json
import time
from pathlib import Path

from numapin_campaigns.histories.search import EVERYTHING, KINDS, Kind, random_history, shortened

HELP = "search random histories for a write that breaks a law"
EVERY_SECONDS = 10.0
"""Time between two lines of progress."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command line: kinds of histories and their seeds."""
    parser.add_argument("--kind", choices=list(KINDS), help=f"{EVERYTHING.name} has all others")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10_000, help="how many seeds of each kind")
    parser.add_argument("--state", type=Path, help="a file that remembers the next seed")


def run(options: argparse.Namespace) -> bool:
    """Search all kinds, or one of them; whether no law was broken."""
    kinds = [KINDS[options.kind]] if options.kind else list(KINDS.values())
    for kind in kinds:
        first = _saved(options.state).get(kind.name, 0) if options.state else options.first
        if not _search(kind, range(first, first + options.count), options.state):
            return False
    return True


def _search(kind: Kind, seeds: range, state: Path | None) -> bool:
    """Whether no history of `seeds` breaks a law."""
    began = said = time.monotonic()
    print(f"{kind.name}: seeds {seeds.start} to {seeds.stop - 1}", flush=True)
    for seed in seeds:
        history, problem = random_history(seed, kind)
        if problem is not None:
            print(f"{kind.name}: seed {seed}: {problem!r}\nthe shortest part that shows it:")
            print(shortened(history))
            return False
        if time.monotonic() - said > EVERY_SECONDS or seed == seeds[-1]:
            said = time.monotonic()
            print(
                f"{kind.name}: up to seed {seed} in {said - began:.0f} s: no violation", flush=True
            )
            if state:
                state.write_text(json.dumps(_saved(state) | {kind.name: seed + 1}))
    return True


def _saved(state: Path) -> dict[str, int]:
    return dict(json.loads(state.read_text())) if state.exists() else {}
