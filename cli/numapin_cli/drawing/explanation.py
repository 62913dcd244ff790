"""The answer to `numapin explain`, for people."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numapin_api.quantity import format_bytes, plural
from numapin_cli.advice.explanation import Explanation, Line
from numapin_cli.advice.remedies.releases import Holder
from numapin_cli.drawing.text import plain, section

_MOST_HOLDERS: Final = 10
_TRIED: Final = {
    "again": ("creating it again", "creating it again"),
    "release": ("set of ended pods", "sets of ended pods"),
    "move": ("home for a pod in the way", "homes for pods in the way"),
    "node": ("node", "nodes"),
    "size": ("other size", "other sizes"),
    "edit": ("edit of the policy", "edits of the policy"),
}


def draw_explanation(explanation: Explanation, *, wide: bool) -> RenderableType:
    """The verdict, the reasons, who is in the way, and what would help."""
    return Group(
        *_verdict(explanation),
        *_facts(explanation.facts),
        *_in_the_way(explanation, None if wide else _MOST_HOLDERS),
        *_remedies(explanation),
        *_tried(explanation),
    )


def _verdict(explanation: Explanation) -> Iterator[RenderableType]:
    heading = plain(explanation.subject[:1].upper() + explanation.subject[1:], "bold")
    heading.append_text(plain(f" {explanation.verdict}", "" if explanation.is_well else "yellow"))
    if explanation.reason:
        heading.append_text(plain(f" ({explanation.reason})", "yellow"))
    yield heading
    where = [f"node {explanation.node}"] if explanation.node else []
    where += [f"policy {explanation.policy}"] if explanation.policy else []
    if where and not explanation.subject.startswith(("node", "policy")):
        yield plain(f"  {', '.join(where)}", "dim")
    elif explanation.subject.startswith("node") and explanation.policy:
        yield plain(f"  policy {explanation.policy}", "dim")
    for text in (*(f"assumed: {one}" for one in explanation.assumed), *explanation.why):
        yield Padding(plain(text), (0, 0, 0, 2))


def _facts(facts: tuple[Line, ...]) -> Iterator[RenderableType]:
    if not facts:
        return
    rows = Table.grid(padding=(0, 2))
    rows.add_column(max_width=36, overflow="fold")
    for one in facts:
        rows.add_row(plain(one.subject, "bold"), plain(one.text))
    yield from section("Details", rows)


def _in_the_way(explanation: Explanation, most: int | None) -> Iterator[RenderableType]:
    holders = explanation.in_the_way
    if not holders:
        return
    rows = Table.grid(padding=(0, 2))
    for one in holders[:most]:
        rows.add_row(plain(one.name, "bold"), *map(plain, _having(one)))
    if most is not None and len(holders) > most:
        rows.add_row(plain(f"and {len(holders) - most} more (-o wide lists them)"))
    yield from section(f"Who has what on {explanation.node}", rows)


def _having(holder: Holder) -> tuple[str, ...]:
    cpus = f"{plural(len(holder.cpus), 'CPU')}: {holder.cpus}" if holder.cpus else "shared CPUs"
    memory = f"{format_bytes(holder.memory_bytes)} on NUMA {holder.mems}" if holder.mems else ""
    priority = holder.pod.origin.priority if holder.pod else 0
    return cpus, memory, f"priority {priority}" if priority else ""


def _remedies(explanation: Explanation) -> Iterator[RenderableType]:
    if not explanation.remedies:
        return
    rows = Table.grid(padding=(0, 1))
    for number, one in enumerate(explanation.remedies, start=1):
        text = plain(one.text)
        text.append("\n").append_text(plain(f"-> {one.effect}", "green"))
        for note in one.notes:
            text.append("\n").append_text(plain(f"({note})", "dim"))
        rows.add_row(f"{number}.", text)
    yield from section("What would help, each tried with the operator's planner", rows)


def _tried(explanation: Explanation) -> Iterator[RenderableType]:
    counts = explanation.tried
    if not counts:
        return
    parts = [
        f"{count} {_TRIED[what][0 if count == 1 else 1]}" if what != "again" else _TRIED[what][0]
        for what, count in counts.items()
    ]
    nothing = "" if explanation.remedies else "Nothing that was tried would help. "
    yield Text()
    yield plain(f"{nothing}Tried: {', '.join(parts)}.", "dim")
    if explanation.stopped:
        yield plain("The limit of plans was reached; not everything was tried.", "dim")
    for text in explanation.limits:
        yield plain(f"{text[:1].upper()}{text[1:]}.", "dim")
