"""Many nodes for people: one line each, or counted by policy."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numapin_cli.drawing.text import plain
from numapin_cli.fleet.node_rows import READY, UNGOVERNED, NodeRow, PolicySummary

_COLUMNS = ("node", "policy", "mode", "exclusive", "shared", "refused", "ready")
_WIDE = ("free", "reserved", "drift", "message")


def draw_rows(rows: Sequence[NodeRow], *, wide: bool) -> RenderableType:
    """A line for each node."""
    drawn = columns((*_COLUMNS, *(_WIDE if wide else ())), no_wrap=wide)
    for row in rows:
        cells = [
            row.name,
            row.policy or "-",
            row.mode or "-",
            str(row.exclusive),
            str(row.shared) if row.has_pools else "-",
            str(row.refused),
        ]
        more = [str(row.free), str(row.reserved) if row.has_pools else "-", str(row.drift)]
        drawn.add_row(
            *map(plain, cells),
            _readiness(row),
            *(map(plain, [*more, row.message]) if wide else ()),
        )
    return drawn


def draw_summaries(summaries: Sequence[PolicySummary]) -> RenderableType:
    """A line for each policy, then the states of its nodes that are not Ready."""
    drawn = columns(("policy", "nodes", "ready", "exclusive", "free", "refused"))
    states = columns(("policy", "not ready", "nodes"))
    for one in summaries:
        counts = (one.nodes, one.ready, one.exclusive, one.free, one.refused)
        drawn.add_row(plain(one.policy or "-"), *(f"{count:,}" for count in counts))
        for state, count in one.states.items():
            if state not in {READY, UNGOVERNED}:
                states.add_row(plain(one.policy or "-"), plain(state, "yellow"), f"{count:,}")
    return Group(drawn, "", states) if states.row_count else drawn


def columns(headings: Iterable[str], *, no_wrap: bool = False) -> Table:
    """An empty table with headings and no lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading.upper(), overflow="fold", no_wrap=no_wrap)
    return table


def _readiness(row: NodeRow) -> Text:
    if not row.is_governed:
        return plain("-")
    return plain(row.readiness, "" if row.is_ready else "yellow")
