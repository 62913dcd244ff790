"""Many nodes for people: one line each, counted by policy, or on one screen."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numapin_cli.advice.policies import explain_policy
from numapin_cli.drawing.text import plain, section
from numapin_cli.fleet.node_rows import READY, UNGOVERNED, NodeRow, PolicySummary
from numapin_cli.fleet.overview import Concern, Overview
from numapin_cli.fleet.programs import Program

_COLUMNS = ("node", "policy", "mode", "exclusive", "shared", "refused", "ready")
_WIDE = ("free", "reserved", "drift", "message")


def draw_rows(rows: Sequence[NodeRow], *, wide: bool) -> RenderableType:
    """A line for each node."""
    drawn = _columns((*_COLUMNS, *(_WIDE if wide else ())), no_wrap=wide)
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
    drawn = _columns(("policy", "nodes", "ready", "exclusive", "free", "refused"))
    states = _columns(("policy", "not ready", "nodes"))
    for one in summaries:
        counts = (one.nodes, one.ready, one.exclusive, one.free, one.refused)
        drawn.add_row(plain(one.policy or "-"), *(f"{count:,}" for count in counts))
        for state, count in one.states.items():
            if state not in {READY, UNGOVERNED}:
                states.add_row(plain(one.policy or "-"), plain(state, "yellow"), f"{count:,}")
    return Group(drawn, "", states) if states.row_count else drawn


def _columns(headings: Iterable[str], *, no_wrap: bool = False) -> Table:
    """An empty table with headings and no lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading.upper(), overflow="fold", no_wrap=no_wrap)
    return table


def _readiness(row: NodeRow) -> Text:
    apart = row.node_mode.lower()
    if not row.is_governed:
        return plain(apart or "-")
    shown = f"{row.readiness}, {apart}" if apart else row.readiness
    return plain(shown, "" if row.is_ready and not apart else "yellow")


def draw_overview(overview: Overview) -> RenderableType:
    """Versions, policies, nodes, and what needs a person."""
    return Group(*_parts(overview))


def _parts(overview: Overview) -> Iterator[RenderableType]:
    yield (
        Text("All is Ready.", "bold green")
        if overview.is_ready
        else Text("Something is not Ready.", "bold yellow")
    )
    yield from section("Versions", _versions(overview))
    if overview.policies:
        yield from section("Policies", _policies(overview))
    else:
        yield Text("\nThere is no policy: numapin does nothing.")
    yield from section("Nodes", _states(overview))
    if concerns := overview.concerns:
        yield from section("Needs attention", _concerns(concerns))


def _versions(overview: Overview) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_row("client", plain(overview.client))
    rows.add_row("API", plain(f"{', '.join(overview.served)} (Kubernetes {overview.kubernetes})"))
    if overview.programs is None:
        rows.add_row("programs", plain("not known: their pods may not be read", "yellow"))
    for one in overview.programs or ():
        rows.add_row(one.component, _versions_of(one))
    return rows


def _versions_of(program: Program) -> Text:
    if not program.pods:
        return plain("no pod", "yellow")
    ready = program.pods - len(program.unready)
    versions = ", ".join(_counted(program.versions.items()))
    text = f"{versions}; {ready:,} of {program.pods:,} ready"
    return plain(text, "yellow" if program.unready else "")


def _counted(versions: Iterable[tuple[str, int]]) -> list[str]:
    found = list(versions)
    if len(found) == 1:
        return [found[0][0]]
    return [f"{version} ({count:,})" for version, count in found]


def _policies(overview: Overview) -> Table:
    rows = _columns(("policy", "mode", "nodes", "in force", "stalled", "not served", "refused", ""))
    for one in overview.policies:
        status, explained = one.status, explain_policy(one)
        counts = (
            status.nodes_selected,
            status.nodes_in_force,
            status.nodes_stalled,
            status.nodes_not_served,
            status.refused,
        )
        well = plain("Ready") if explained.is_well else plain(explained.reason or "wait", "yellow")
        rows.add_row(plain(one.name), one.spec.mode, *(f"{each:,}" for each in counts), well)
    return rows


def _states(overview: Overview) -> RenderableType:
    if not overview.rows:
        return Text("There is no node.")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right")
    for state, count in overview.states.items():
        rows.add_row(f"{count:,}", plain(state, "" if state in {READY, UNGOVERNED} else "yellow"))
    return rows


def _concerns(concerns: Iterable[Concern]) -> Table:
    rows = Table.grid(padding=(0, 1))
    for number, one in enumerate(concerns, start=1):
        rows.add_row(f"{number}.", plain(one.what, "" if one.is_ready else "yellow"))
        if one.look:
            rows.add_row("", plain(f"-> {one.look}"))
    return rows
