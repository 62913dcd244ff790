"""Reads the lines of all nodes, from an API server or from files, without holding all objects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_cli.fleet.label_selector import Selector
from numapin_cli.fleet.node_rows import NodeRow
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import Reader
from numapin_client.errors import ForbiddenError
from numapin_client.resources import CPU_POLICIES, NODES
from numapin_operator.observe.node_mode import node_mode

Labels = Mapping[str, str]
Json = Mapping[str, Any]


class _Node(NamedTuple):
    """What lines need of a Node."""

    name: str
    labels: Labels
    mode: str = ""

    @classmethod
    def of(cls, metadata: Json) -> "_Node":
        return cls(metadata["name"], section(metadata, "labels"), node_mode(metadata))


class FleetReader:
    """Reads lines.

    Attributes:
        parts: reads NodeAssignments; has notes of what could not be read.
    """

    def __init__(self, reader: Reader, *, with_documents: bool = False) -> None:
        self.parts, self._reader, self._with_documents = NodeParts(reader), reader, with_documents

    async def rows(self, selector: Selector) -> list[NodeRow]:
        """The lines of the nodes that a selector selects, by name.

        Nodes without a NodeAssignment are among them if Nodes may be listed.

        Raises:
            ClientError: the NodeAssignments cannot be read; or there is a selector, and Nodes
                cannot be.
        """
        if self._with_documents:
            found = [self._row(one) for one in await self.parts.all()]
        else:
            found = await self.parts.each(self._row)
        try:
            nodes = await self._reader.metadata(NODES, _Node.of)
        except ForbiddenError:
            if selector.requirements:
                raise
            nodes = []
        return _selected(found, nodes, selector)

    async def policies(self) -> list[str]:
        """The names of all policies; none if they may not be listed."""
        return [key.name for key in await self._reader.names_if_allowed(CPU_POLICIES)]

    def _row(self, assignment: Manifest) -> NodeRow:
        state = NodeState.decode(assignment.content)
        return NodeRow.of(state, with_document=self._with_documents)


def rows_in_files(
    objects: Objects, selector: Selector, *, with_documents: bool = False
) -> list[NodeRow]:
    """The same, of the objects of files."""
    found = [
        NodeRow.of(NodeState.decode(one.content), with_document=with_documents)
        for one in objects.of(NODE_ASSIGNMENT_KIND).values()
    ]
    nodes = [_Node.of(one.metadata) for one in objects.of("Node").values()]
    return _selected(found, nodes, selector)


def policies_in_files(objects: Objects) -> Iterable[str]:
    """The names of all policies of files."""
    return objects.of(CPU_POLICY_KIND)


def _selected(rows: Sequence[NodeRow], nodes: Iterable[_Node], selector: Selector) -> list[NodeRow]:
    """The lines of the nodes with such labels; one with a NodeAssignment alone has none."""
    by_name, known = {row.name: row for row in rows}, {one.name: one for one in nodes}
    found = (known.get(name, _Node(name, {})) for name in sorted({*by_name, *known}))
    return [
        (by_name.get(one.name) or NodeRow.of(NodeState(one.name))).of_node(one.mode)
        for one in found
        if selector.selects(one.labels)
    ]
