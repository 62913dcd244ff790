"""How long tests take: one row for each module, added up by area in one table.

Every pytest of a run writes its rows; who starts several reads all of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE: Final = "NUMAPIN_TEST_TIMES"
"""The environment variable with the file that rows are added to, instead of printing a table."""

AREAS: Final = (
    "unit",
    "scenarios and conformance",
    "integration",
    "end to end, as processes",
    "end to end, as pods",
    "virtual machines",
    "campaigns",
)
SLOW_SECONDS: Final = 20.0
"""A module that takes longer has a row of its own below the table."""

Key = tuple[str, str]
"""The area and the module."""


@dataclass(frozen=True)
class Row:
    """What some tests took.

    `seconds` is all of it by the clock, `setup_seconds` what fixtures took of that. `cpu_seconds`
    counts pytest itself and the processes whose end it saw: no containers.
    """

    tests: int = 0
    skipped: int = 0
    seconds: float = 0.0
    setup_seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: "Row") -> "Row":
        mine, others = asdict(self), asdict(other)
        return Row(**{name: mine[name] + others[name] for name in mine})


def write(file: Path, rows: Mapping[Key, Row]) -> None:
    """Add rows to a file; several processes may."""
    lines = [
        json.dumps({"area": area, "module": module, **asdict(row)}) + "\n"
        for (area, module), row in rows.items()
    ]
    with file.open("a") as output:
        output.write("".join(lines))


def read(file: Path) -> dict[Key, Row]:
    """All rows of a file; empty if nothing was written."""
    rows: dict[Key, Row] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        found = json.loads(line)
        key = found.pop("area"), found.pop("module")
        rows[key] = rows.get(key, Row()) + Row(**found)
    return rows


def table(rows: Mapping[Key, Row]) -> Iterator[str]:
    """A row for each area that has tests, and one for all, as Markdown."""
    yield "| area | tests | skips | seconds | of these set-up | CPU seconds |"
    yield "|---|---|---|---|---|---|"
    for name in AREAS:
        own = [row for (area, _), row in rows.items() if area == name]
        if own:
            yield _line(name, own)
    yield _line("all", rows.values())


def slow(rows: Mapping[Key, Row]) -> Iterator[str]:
    """The modules that take longest, longest first."""
    for (_, module), row in sorted(rows.items(), key=lambda item: -item[1].seconds):
        if row.seconds >= SLOW_SECONDS:
            yield f"{row.seconds:6.0f} s, set-up {row.setup_seconds:.0f} s: {module}"


def _line(name: str, rows: Iterable[Row]) -> str:
    total = sum(rows, Row())
    counts = f"{total.tests} | {total.skipped}"
    seconds = f"{total.seconds:.0f} | {total.setup_seconds:.0f} | {total.cpu_seconds:.0f}"
    return f"| {name} | {counts} | {seconds} |"
