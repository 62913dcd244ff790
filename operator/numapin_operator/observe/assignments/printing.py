"""A spec as it is written: with a line for each container, or as older enforcers read it.

Does no I/O.
"""

from dataclasses import replace
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.forms.lines import print_line
from numapin_api.forms.spec import refusals_of, spec_with_lines
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.observe.assignments.view import AssignmentView, Form

Json = dict[str, Any]


def printed(
    spec: NodeAssignmentSpec, before: AssignmentView | None, *, as_lines: bool
) -> tuple[Json, Form]:
    """A spec as JSON, and how the API server has it once that is written.

    Args:
        spec: the spec.
        before: the assignment that it replaces; None if there is none.
        as_lines: whether its enforcer reads lines.
    """
    generation = before.generation + 1 if before else 1
    if not as_lines:
        return spec.to_wire(), Form(since=(generation,) * len(spec.containers))
    lines, since = _lines(spec, before, generation)
    wire = replace(spec, containers=(), refused=(), refused_resizes=None).to_wire()
    return spec_with_lines(wire, lines), Form(spec.pools is not None, lines, since)


def _lines(
    spec: NodeAssignmentSpec, before: AssignmentView | None, generation: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The line of each container; that of an unchanged one is as it was.

    A new time of a move, for one, is nothing that an enforcer does: what it has reported still
    holds, so the line keeps its `since`, and the move waits for no report about that time.
    """
    known = {}
    if before is not None and before.form.has_lines:
        form = before.form
        rows = zip(before.spec.containers, form.lines, form.since, strict=True)
        known = {one.key: (one, line, first) for one, line, first in rows}
    lines, since = list[str](), list[int]()
    for one in spec.containers:
        earlier, line, first = known.get(one.key, (None, "", generation))
        if earlier != one:
            if earlier is None or _kernel_has(earlier) != _kernel_has(one):
                first = generation
            line = print_line(one.to_wire(), first)
        lines.append(line)
        since.append(first)
    return tuple(lines), tuple(since)


def _kernel_has(one: ContainerAssignment) -> tuple[CpuSet, MemSet, bool]:
    """What an enforcer does for a container, and reports of it."""
    return one.cpus, one.mems, one.exclusive


def is_printed_alike(one: NodeAssignmentSpec, other: NodeAssignmentSpec) -> bool:
    """Whether two specs differ in nothing but what the status tells of them, if they have lines."""
    return one == replace(
        other,
        refused=one.refused,
        refused_omitted=one.refused_omitted,
        refused_resizes=one.refused_resizes,
        unassigned=one.unassigned,
    )


def told_of(spec: NodeAssignmentSpec) -> Json:
    """What the status tells of a spec with lines; see `forms.spec.OPERATOR_STATUS`."""
    told = refusals_of(replace(spec, containers=()).to_wire())
    if refused := spec.refused_count:
        told["refused"] = refused
    if outdated := sum(1 for one in spec.containers if one.outdated):
        told["outdated"] = outdated
    return told
