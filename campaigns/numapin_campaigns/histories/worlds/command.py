"""Every history of tiny nodes: each pair of specs, each start state, each single fault.

A row of the table is one class of faults in one world, complete: every history there is, but for
those that are like another one (`small_worlds.py`, `start_states.py`). Each is judged after every
single write as random ones are; what several have in common is played once (`replay.py`). The first
violations are printed, shortened, as Python that belongs in
tests/unit/enforcer/histories/test_histories.py, and the status is 1 in the end.

With --state a search goes on with the first row that the last one did not end. With --shard it
plays each n-th history only, so that n processes share the work.
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from numapin_campaigns.histories.actions import History
from numapin_campaigns.histories.replay import Replay
from numapin_campaigns.histories.search import shortened
from numapin_campaigns.histories.worlds.small_worlds import CLASSES, WORLDS, cases
from numapin_campaigns.histories.worlds.start_states import SHAPES, histories, states

HELP = "play every history of tiny nodes"
VERSIONS = (1, 2)
CPUS = (2, 3)
START_STATE_CPUS = (2,)
"""With three CPUs there are some twenty million histories."""

EVERY_SECONDS = 30.0
"""Time between two lines of progress."""

MOST_SHOWN = 3


@dataclass(frozen=True)
class Row:
    """One class of faults in one world."""

    fault: str
    world: str
    version: int
    cpus: int

    def __str__(self) -> str:
        return f"{self.fault}, {self.world}, v{self.version}, {self.cpus} CPUs"

    def histories(self) -> Iterator[History]:
        """Each of its histories."""
        if self.fault in CLASSES:
            for case in cases(WORLDS[self.world], self.version, self.cpus):
                yield from CLASSES[self.fault](case)
            return
        shape = SHAPES[self.world]
        for masks in states(shape, self.version, self.cpus):
            yield from histories(shape, self.version, self.cpus, masks)


@dataclass(frozen=True)
class Result:
    """How many histories a row has, how many break a law, and how long they took."""

    histories: int
    violations: int
    seconds: float


def rows(only: str | None) -> Iterator[Row]:
    """All rows, or those of one class."""
    named = [*((fault, world) for fault, world in itertools.product(CLASSES, WORLDS))]
    named += [("start state", world) for world in SHAPES]
    for cpus, (fault, world), version in itertools.product(CPUS, named, VERSIONS):
        if only in {None, fault} and (fault in CLASSES or cpus in START_STATE_CPUS):
            yield Row(fault, world, version, cpus)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which rows, and which part of each."""
    parser.add_argument("--only", choices=[*CLASSES, "start state"], help="one class of faults")
    parser.add_argument("--shard", help="i/n: only every n-th history, from the i-th on")
    parser.add_argument("--state", type=Path, help="a file that remembers the rows that ended")


def run(options: argparse.Namespace) -> bool:
    """Search every row that the state does not have yet, and print the table."""
    found = _saved(options.state)
    for row in rows(options.only):
        key = f"{row}{f', shard {options.shard}' if options.shard else ''}"
        if key not in found:
            found[key] = _search(row, _sharded(row.histories(), options.shard))
            if options.state:
                content = {one: asdict(result) for one, result in found.items()}
                options.state.write_text(json.dumps(content, indent=1))
    print(table(found))
    return not any(one.violations for one in found.values())


def _search(row: Row, every: Iterable[History]) -> Result:
    began = said = time.monotonic()
    count = violations = 0
    replay = Replay()
    for history in every:
        count += 1
        problem = replay.broken_law(history)
        if problem is not None:
            violations += 1
            if violations <= MOST_SHOWN:
                print(f"{row}: {problem!r}\n{shortened(history)}", flush=True)
        if time.monotonic() - said > EVERY_SECONDS:
            said = time.monotonic()
            print(f"{row}: {count:,} histories in {said - began:.0f} s", flush=True)
    seconds = time.monotonic() - began
    print(f"{row}: {count:,} histories, {violations} violations, {seconds:.0f} s", flush=True)
    return Result(count, violations, round(seconds, 1))


def table(found: dict[str, Result]) -> str:
    """The results as Markdown."""
    lines = ["| class, world | histories | violations | seconds |", "|---|---|---|---|"]
    for row, one in found.items():
        lines.append(f"| {row} | {one.histories:,} | {one.violations} | {one.seconds:.0f} |")
    total = Result(
        sum(one.histories for one in found.values()),
        sum(one.violations for one in found.values()),
        sum(one.seconds for one in found.values()),
    )
    lines.append(f"| all | {total.histories:,} | {total.violations} | {total.seconds:.0f} |")
    return "\n".join(lines)


def _sharded(every: Iterator[History], shard: str | None) -> Iterable[History]:
    if shard is None:
        return every
    number, of = map(int, shard.split("/"))
    return itertools.islice(every, number - 1, None, of)


def _saved(state: Path | None) -> dict[str, Result]:
    if state is None or not state.exists():
        return {}
    return {row: Result(**one) for row, one in json.loads(state.read_text()).items()}
