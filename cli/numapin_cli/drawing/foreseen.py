"""What the operator would write for one node, for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numapin_api.conditions.reasons import Reason
from numapin_cli.drawing.plan import draw_plan
from numapin_cli.drawing.text import plain, section
from numapin_cli.what_if import Foreseen
from numapin_operator.nodes.decide import Write
from numapin_operator.nodes.moves.changes import planned_moves

ByPod = Mapping[str, Iterable[str]]
"""Texts by namespace and name of a pod."""

_WRITES: Final = {
    Write.NOTHING: "the NodeAssignment stays as it is",
    Write.CREATE: "the NodeAssignment is created",
    Write.REPLACE: "the NodeAssignment changes",
    Write.DELETE: "the NodeAssignment is deleted",
}


def draw_foreseen(
    each: Foreseen, said: Mapping[str, ByPod], *, named: bool, machine: bool
) -> RenderableType:
    """The decision, and what the node's containers have then.

    Args:
        each: the decision.
        said: what is said about pods, by the title under which it stands.
        named: whether there is a Node, and a NodeAssignment to be written.
        machine: whether to draw the machine too.
    """
    return Group(
        *_decision(each, named=named), *_containers(each, machine=machine), *_about_pods(said)
    )


def _about_pods(said: Mapping[str, ByPod]) -> Iterator[RenderableType]:
    for title, by_pod in said.items():
        rows = Table.grid(padding=(0, 2))
        for pod, texts in by_pod.items():
            rows.add_row(plain(pod, "bold"), plain("; ".join(texts)))
        if rows.row_count:
            yield from section(title, rows)


def _decision(each: Foreseen, *, named: bool) -> Iterator[RenderableType]:
    outcome = each.outcome
    if named:
        governed = f"policy {outcome.policy}" if outcome else "no policy governs it"
        heading = f"\nNode {each.picture.name}: {governed}; {_WRITES[each.write]}"
        yield Text(heading, style="bold")
    if outcome is not None and outcome.reason != Reason.IN_FORCE:
        yield Text(f"  {each.said}", "yellow")
    if each.spec is not None and each.spec.mode == "None":
        yield Text("  mode None: every container runs as without numapin")


def _containers(each: Foreseen, *, machine: bool) -> Iterator[RenderableType]:
    assignment = each.picture.assignment
    topology = assignment.topology if assignment else None
    if topology is not None and each.spec is not None:
        pods = sorted(each.picture.pods, key=lambda pod: (*pod.order, pod.uid))
        yield draw_plan(topology, each.spec, pods, machine=machine)
    rows = Table.grid()
    for line in planned_moves(each.before, each.spec, topology):
        rows.add_row(plain(line))
    if rows.row_count:
        yield from section("Moves", rows)
