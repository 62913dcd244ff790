"""This node's NodeAssignment, as the API server has it now."""

import asyncio
from collections.abc import Callable, Sequence

from numapin_client.client import ApiClient, Source
from numapin_client.informer import Informer
from numapin_client.resources import NODE_ASSIGNMENTS, Json
from numapin_client.store import Change
from numapin_daemon.worker import Worker


class AssignmentWatch:
    """The newest object, and whether the watch works."""

    def __init__(
        self,
        api: ApiClient,
        node_name: str,
        observe: Callable[[Json | None], None],
        wake: asyncio.Event,
    ) -> None:
        """Args: `observe` is called with each version of the object; None once deleted."""
        source = Source(NODE_ASSIGNMENTS, field_selector=f"metadata.name={node_name}")
        self._informer: Informer[Json] = Informer(api, source, lambda body: body, self._take)
        self._observe, self._wake = observe, wake
        self._follower = Worker("assignment-watch", self._informer.run, wake=wake.set)
        self.body: Json | None = None
        """The object as the API server has it; None if it has none, or before its first answer."""

    @property
    def problem(self) -> str:
        """Why the API server does not answer; empty if it does.

        An answer without an object is no problem: no policy selects this node.
        """
        problem = self._follower.problem or self._informer.problem
        if problem is not None:
            return str(problem) or type(problem).__name__
        return "" if self._informer.synced.is_set() else "it has not answered yet"

    async def run(self) -> None:
        """List and watch until cancelled; the first answer wakes the loop even if it is empty."""
        self._follower.request()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run(), name="assignment-watch")
            await self._informer.synced.wait()
            self._wake.set()

    def _take(self, changes: Sequence[Change[Json]]) -> None:
        before, self.body = self.body, changes[-1].new
        self._observe(self.body)
        if _spec_of(before) != _spec_of(self.body):
            self._wake.set()


def _spec_of(body: Json | None) -> tuple[str, int] | None:
    """The object and its generation, which a change of the status does not change."""
    if body is None:
        return None
    return body["metadata"]["uid"], body["metadata"]["generation"]
