"""The objects of an API server, each kind followed by an informer."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from numapin_cli.inputs.node_objects import whole
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import manifest
from numapin_cli.live.server import is_unknown_resource, said
from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import Hooks
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import (
    CPU_POLICIES,
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    NODES,
    Key,
    Resource,
)
from numapin_operator.observe.records import PolicyView
from numapin_page.live.kept import kept, kept_node, kept_topology, pods_like
from numapin_page.views.node_row import Beside

Json = dict[str, Any]
Changed = Callable[[Iterable[str]], None]

_KEPT: Final[Mapping[Resource, Callable[[Json], str]]] = {
    NODE_ASSIGNMENTS: kept,
    NODE_REPORTS: kept,
    NODE_TOPOLOGIES: kept_topology,
    NODES: kept_node,
    CPU_POLICIES: kept,
}


class ServerParts:
    """Follows the objects; see `Parts`."""

    def __init__(self, client: ApiClient, changed: Changed) -> None:
        """Args: `changed` is called with the names of nodes about which something changed.

        It is called first when everything has been read that can be: a node's line is made once.
        """
        self._changed, self._is_loaded = changed, False
        self._server = client.connection.login.server
        self._policies: dict[str, PolicyView] = {}
        self._informers: dict[Resource, Informer[str]] = {
            resource: Informer(
                client,
                Source(resource),
                keep,
                self._policy_changed if resource is CPU_POLICIES else self._of_nodes,
            )
            for resource, keep in _KEPT.items()
        }

        self._settled = {one: _settled(of) for one, of in self._informers.items()}

    async def run(self) -> NoReturn:
        """Follow all of them until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for resource, informer in self._informers.items():
                tasks.create_task(informer.run(), name=f"follow-{resource.plural}")
            for one in self._settled.values():
                await one.wait()
            self._is_loaded = True
            self._tell(self.names())
            await self._informers[NODE_ASSIGNMENTS].synced.wait()
            self._tell(self.names())
        raise AssertionError("informers end only when they are cancelled")

    def names(self) -> Collection[str]:
        """See `Parts`. Which nodes have no assignment is known once all of these have been read."""
        assignments = self._informers[NODE_ASSIGNMENTS]
        kinds = (NODE_ASSIGNMENTS, NODES) if assignments.synced.is_set() else (NODE_ASSIGNMENTS,)
        return {key.name for one in kinds for key in self._informers[one].items}

    def state(self, node: str) -> NodeState:
        """See `Parts`."""
        assignment, report, topology = (
            manifest(resource, json.loads(text)) if (text := self._text(resource, node)) else None
            for resource in (NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES)
        )
        if assignment is None:
            return NodeState(node)
        return NodeState.decode(whole(assignment, report, topology).content)

    def beside(self, node: str, policy: str) -> Beside:
        """See `Parts`."""
        view = self._policies.get(policy)
        cores = view is not None and view.spec.options.full_pcpus_only
        return Beside(self._text(NODES, node), whole_cores=cores)

    def status(self) -> Json:
        """See `Parts`."""
        problems = {one: said(of.problem) for one, of in self._informers.items() if of.problem}
        needed = problems.get(NODE_ASSIGNMENTS, "")
        return {
            "source": self._server,
            "loaded": self._is_loaded,
            "problem": needed or self._lost(problems),
            "forbidden": _is_refused(self._informers[NODE_ASSIGNMENTS].problem),
            "notes": self._notes(problems),
        }

    def with_pod(self, text: str, most: int) -> Iterable[Json]:
        """See `Parts`."""
        followed = self._informers[NODE_ASSIGNMENTS].items
        return pods_like(text, ((key.name, found) for key, found in followed.items()), most)

    def _lost(self, problems: Mapping[Resource, str]) -> str:
        """What of the server fails that is no question of rights."""
        failed = (
            why for one, why in problems.items() if not _is_refused(self._informers[one].problem)
        )
        return next(failed, "")

    def _notes(self, problems: Mapping[Resource, str]) -> list[str]:
        """What may not be read, or is not there, beside NodeAssignments."""
        return [
            f"not read: {one.plural}: {why}"
            for one, why in problems.items()
            if one is not NODE_ASSIGNMENTS and _is_refused(self._informers[one].problem)
        ]

    def _text(self, resource: Resource, node: str) -> str:
        return self._informers[resource].items.get(Key(node), "")

    def _of_nodes(self, changes: Sequence[Change[str]]) -> None:
        self._tell(change.key.name for change in changes)

    def _policy_changed(self, changes: Sequence[Change[str]]) -> None:
        for change in changes:
            if change.new is None:
                self._policies.pop(change.key.name, None)
            else:
                self._policies[change.key.name] = PolicyView.decode(json.loads(change.new))
        self._tell(self.names())

    def _tell(self, nodes: Iterable[str]) -> None:
        if self._is_loaded:
            self._changed(nodes)


def _settled(informer: Informer[str]) -> asyncio.Event:
    """Set once the objects have been read, or cannot be."""
    found = asyncio.Event()
    informer.hooks = Hooks(listed=lambda _: found.set(), failed=lambda _: found.set())
    return found


def _is_refused(problem: ClientError | None) -> bool:
    """Whether waiting does not help: a right or a kind is missing."""
    if isinstance(problem, NotFoundError):
        return is_unknown_resource(problem)
    return isinstance(problem, ForbiddenError)
