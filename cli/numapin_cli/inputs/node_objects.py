"""A node's NodeAssignment, NodeReport and NodeTopology as one NodeAssignment."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from numapin_api.forms.joined import joined
from numapin_api.names import NODE_ASSIGNMENT_KIND, NODE_REPORT_KIND, NODE_TOPOLOGY_KIND
from numapin_cli.inputs.manifests import Manifest
from numapin_cli.subcommand import CommandError

PARTS: Final = frozenset({NODE_REPORT_KIND, NODE_TOPOLOGY_KIND})
"""The kinds that say something about the NodeAssignment of the same name."""


def with_parts(manifests: Iterable[Manifest]) -> list[Manifest]:
    """The objects, with each NodeAssignment as v1alpha1 has it, and without its parts.

    A part without its NodeAssignment is about none, and is left out.

    Raises:
        CommandError: a part is listed twice.
    """
    others, parts = list[Manifest](), dict[tuple[str, str], Manifest]()
    for one in manifests:
        if one.kind not in PARTS:
            others.append(one)
        elif (first := parts.setdefault((one.kind, one.name), one)) is not one:
            raise CommandError(
                f"{one.source}: {one.kind} {one.name} is listed twice, first in {first.source};"
                " list it once"
            )
    return [
        one
        if one.kind != NODE_ASSIGNMENT_KIND
        else whole(
            one, parts.get((NODE_REPORT_KIND, one.name)), parts.get((NODE_TOPOLOGY_KIND, one.name))
        )
        for one in others
    ]


def whole(assignment: Manifest, report: Manifest | None, topology: Manifest | None) -> Manifest:
    """A NodeAssignment with its parts; as it is if it cannot be read, which `NodeState` says."""
    try:
        content = joined(assignment.content, _content(report), _content(topology))
    except ValueError:
        return assignment
    return replace(assignment, content=content)


def _content(manifest: Manifest | None) -> Mapping[str, object] | None:
    return manifest.content if manifest else None
