"""The figures of all sizes as one table: a row for each measurement, a column for each size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

HIDDEN = frozenset({"writes", "lists", "thread_cpu_seconds"})
"""Figures that are only in the JSON."""


def rows(sizes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the table."""
    heads = "".join(f"{one['nodes']:>12}" for one in sizes)
    yield f"{'nodes':<44}{heads}"
    yield f"{'pods':<44}" + "".join(f"{one['nodes'] * one['pods']:>12}" for one in sizes)
    for part in dict.fromkeys(part for one in sizes for part in one["figures"]):
        yield part
        names = (name for one in sizes for name in one["figures"].get(part, {}))
        for name in dict.fromkeys(names):
            if name not in HIDDEN:
                cells = (one["figures"].get(part, {}).get(name) for one in sizes)
                yield f"  {name:<42}" + "".join(f"{_text(cell):>12}" for cell in cells)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
