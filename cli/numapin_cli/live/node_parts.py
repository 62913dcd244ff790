"""The NodeAssignments of an API server, each with what its node has reported beside it.

An API server with older CRDs does not know the kinds of reports. A login may lack the right to read
them, which is noted. A NodeAssignment is shown alone then.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from numapin_api.forms.report import KERNEL_FIELDS
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.node_objects import whole, with_parts
from numapin_cli.live.reader import Reader, manifest, together
from numapin_cli.live.server import is_unknown_resource, said
from numapin_client.client import Source
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    Json,
    Key,
    Resource,
)

_PARTS: Final = (NODE_REPORTS, NODE_TOPOLOGIES)

T = TypeVar("T")


class NodeParts:
    """Reads NodeAssignments.

    Every method raises `ClientError` if they cannot be read. Reports are read before them: a report
    of a generation that has not been read would count for nothing.

    Attributes:
        notes: what could not be read beside them, and why, a sentence each.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.notes: dict[str, str] = {}

    async def all(self) -> list[Manifest]:
        """Every NodeAssignment, as v1alpha1 has it."""
        parts = await together(self.every(one, partial(manifest, one)) for one in _PARTS)
        assignments = await self._noteless(self._reader.all(NODE_ASSIGNMENTS))
        self._forget_notes(assignments)
        return with_parts([*assignments, *(each for listed in parts for each in listed)])

    async def each(self, made: Callable[[Manifest], T]) -> list[T]:
        """What is made of every NodeAssignment; nothing else is kept of it.

        Hardware is left out, and what reports say of single containers.
        """
        listed = await self.every(NODE_REPORTS, _without_containers)
        reports = {one.name: one for one in listed}
        reports_itself = list[bool]()

        def of(body: Json) -> T:
            one = manifest(NODE_ASSIGNMENTS, body)
            reports_itself.append(_reports_itself(one))
            return made(whole(one, reports.get(one.name), None))

        found = await self._noteless(self._reader.each(NODE_ASSIGNMENTS, of))
        if all(reports_itself):
            self.notes.clear()
        return found

    async def one(self, node: str) -> Manifest | None:
        """That of a node; None if it has none."""
        report, topology = await together(self._part(one, node) for one in _PARTS)
        assignment = await self._noteless(self._reader.one(NODE_ASSIGNMENTS, Key(node)))
        self._forget_notes([assignment] if assignment else [])
        return whole(assignment, report, topology) if assignment else None

    async def sources(self, node: str = "") -> list[Source]:
        """What to watch for changes of every node, or of one."""
        selector = f"metadata.name={node}" if node else ""
        served = await together(self._is_served(one) for one in _PARTS)
        found = [one for one, is_served in zip(_PARTS, served, strict=True) if is_served]
        return [Source(one, field_selector=selector) for one in (NODE_ASSIGNMENTS, *found)]

    async def every(self, resource: Resource, made: Callable[[Json], T]) -> list[T]:
        """What is made of each object of a kind; none of reports that cannot be read."""
        try:
            return await self._reader.each(resource, made)
        except (ForbiddenError, NotFoundError) as error:
            if resource not in _PARTS:
                raise
            self._note(resource, error)
            return []

    async def _part(self, resource: Resource, node: str) -> Manifest | None:
        try:
            return await self._reader.one(resource, Key(node))
        except (ForbiddenError, NotFoundError) as error:
            self._note(resource, error)
            return None

    async def _is_served(self, resource: Resource) -> bool:
        try:
            await self._reader.client.list_metadata(Source(resource), limit=1)
        except (ForbiddenError, NotFoundError):
            return False
        return True

    async def _noteless(self, read: Awaitable[T]) -> T:
        """What is read; without it, what else could not be read does not matter."""
        try:
            return await read
        except ClientError:
            self.notes.clear()
            raise

    def _forget_notes(self, assignments: Sequence[Manifest]) -> None:
        """Nothing is missing where enforcers report in the NodeAssignments themselves."""
        if all(map(_reports_itself, assignments)):
            self.notes.clear()

    def _note(self, resource: Resource, error: ForbiddenError | NotFoundError) -> None:
        if isinstance(error, NotFoundError) and is_unknown_resource(error):
            return
        self.notes[resource.plural] = f"not read: {resource.plural}: {said(error)}"


def _reports_itself(assignment: Manifest) -> bool:
    """Whether an older enforcer reports in the NodeAssignment itself."""
    return bool(section(assignment.content, "status").get("observedGeneration"))


def _without_containers(report: Json) -> Manifest:
    """A NodeReport without what it says of single containers."""
    status = report.get("status") or {}
    left = {key: part for key, part in status.items() if key not in KERNEL_FIELDS}
    return manifest(NODE_REPORTS, {"metadata": report["metadata"], "status": left})
