"""A node's NodeAssignment with its NodeReport and NodeTopology, as one object of v1alpha1's form.

Operator and enforcer of any version may have written them; with older CRDs, or beside an older
enforcer, the NodeAssignment alone has all of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from numapin_api import names
from numapin_api.forms.joined import joined
from numapin_api.forms.report import is_ahead
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import DEFAULT_TIMING, InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.errors import NotFoundError
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    Json,
    Key,
    Resource,
)
from numapin_lab.controlplane.api import AnswerError, ApiServer

_PARTS: Final = (NODE_REPORTS, NODE_TOPOLOGIES)
_RESOURCES: Final = (NODE_ASSIGNMENTS, *_PARTS)


def read_node(api: ApiServer, node: str, version: str = names.VERSION) -> Json | None:
    """All that is said of a node; None if it has no NodeAssignment.

    The report is read first: one of a generation that has not been read counts for nothing.

    Args:
        api: the API server.
        node: its name.
        version: the version of the API to read the NodeAssignment by.

    Raises:
        AnswerError: the API server refuses.
        OSError: it does not answer.
        ValueError: a line of the NodeAssignment is wrong.
    """
    report, topology = [_read(api, one, node) for one in _PARTS]
    assignment = _read(api, replace(NODE_ASSIGNMENTS, version=version), node)
    return joined(assignment, report, topology) if assignment else None


def _read(api: ApiServer, resource: Resource, node: str) -> Json | None:
    try:
        found: Json = api.get(resource.path(Key(node)))
    except AnswerError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    return found


async def get_node(client: ApiClient, node: str) -> Json | None:
    """The same over a connection of our client.

    Raises:
        ClientError: the API server refuses, or does not answer.
        ValueError: a line of the NodeAssignment is wrong.
    """
    report, topology = [await _get(client, one, node) for one in _PARTS]
    assignment = await _get(client, NODE_ASSIGNMENTS, node)
    return joined(assignment, report, topology) if assignment else None


async def _get(client: ApiClient, resource: Resource, node: str) -> Json | None:
    try:
        return await client.get(resource, Key(node))
    except NotFoundError:
        return None


async def list_nodes(client: ApiClient) -> list[Json]:
    """All that is said of each node that has a NodeAssignment.

    Raises:
        ClientError: the API server refuses, or does not answer.
        ValueError: a line of a NodeAssignment is wrong.
    """
    reports, topologies = [await _list(client, one) for one in _PARTS]
    assignments = await _list(client, NODE_ASSIGNMENTS)
    return [
        joined(one, reports.get(name), topologies.get(name)) for name, one in assignments.items()
    ]


async def _list(client: ApiClient, resource: Resource) -> dict[str, Json]:
    try:
        items = (await client.list_chunk(Source(resource), limit=0)).items
    except NotFoundError:
        if resource is NODE_ASSIGNMENTS:
            raise
        return {}
    return {one["metadata"]["name"]: one for one in items}


OnChange = Callable[[str, Json | None], None]
"""Takes the name of a node and all that is said of it; None if its NodeAssignment was deleted."""


class NodeWatch:
    """Follows the objects of all nodes, or of one, by watches.

    A report about a generation that has not arrived yet is held back until that has. `synced` is
    set once all NodeAssignments are known.
    """

    def __init__(
        self,
        client: ApiClient,
        on_change: OnChange,
        node: str = "",
        timing: InformerTiming = DEFAULT_TIMING,
    ) -> None:
        self._on_change = on_change
        self._latest: dict[Resource, dict[str, Json]] = {one: {} for one in _RESOURCES}
        selector = f"metadata.name={node}" if node else ""
        self._informers = [
            Informer(
                client,
                Source(one, field_selector=selector),
                lambda body: body,
                partial(self._changed, one),
                timing,
            )
            for one in _RESOURCES
        ]

    @property
    def synced(self) -> asyncio.Event:
        """Set once the NodeAssignments were listed."""
        return self._informers[0].synced

    async def run(self) -> None:
        """Follow until cancelled; kinds that the API server does not know are asked for again."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._informers:
                tasks.create_task(one.run(), name=f"follow-{one.source.resource.plural}")

    def _changed(self, resource: Resource, changes: Sequence[Change[Json]]) -> None:
        latest = self._latest[resource]
        for change in changes:
            name = change.key.name
            if change.new is None:
                latest.pop(name, None)
            else:
                latest[name] = change.new
            self._show(name, gone=change.new is None and resource is NODE_ASSIGNMENTS)

    def _show(self, name: str, *, gone: bool) -> None:
        assignment, report, topology = (self._latest[one].get(name) for one in _RESOURCES)
        if assignment is None:
            if gone:
                self._on_change(name, None)
        elif not _is_early(report, assignment["metadata"]):
            with suppress(ValueError):  # a wrong line: what was shown before stays
                self._on_change(name, joined(assignment, report, topology))


def _is_early(report: Json | None, metadata: Json) -> bool:
    """Whether a report has arrived before the generation that it is about."""
    status = (report or {}).get("status") or {}
    return is_ahead(status, metadata["uid"], metadata["generation"])
