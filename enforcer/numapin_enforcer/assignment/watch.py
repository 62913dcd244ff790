"""Edge: our own NodeAssignment as the API server has it, kept up to date by a watch."""

import asyncio
from collections.abc import Callable, Sequence

from numapin_client.client import ApiClient, Source
from numapin_client.informer import Informer
from numapin_client.resources import NODE_ASSIGNMENTS, Json
from numapin_client.store import Change


class AssignmentWatch:
    """The newest object, and whether we would know of a newer one."""

    def __init__(
        self,
        api: ApiClient,
        node_name: str,
        observe: Callable[[Json | None], None],
        wake: asyncio.Event,
    ) -> None:
        """Args: `observe` is called with each new version of the object, None once it is gone."""
        source = Source(NODE_ASSIGNMENTS, field_selector=f"metadata.name={node_name}")
        self._informer: Informer[Json] = Informer(api, source, lambda body: body, self._take)
        self._observe, self._wake = observe, wake
        self.body: Json | None = None
        """The object as the API server has it; None while it has none, or nobody knows."""

    @property
    def problem(self) -> str:
        """Why the API server says nothing; empty while it does.

        That it has no object for this node is an answer, too: there is no policy for it.
        """
        if self._informer.problem is not None:
            return str(self._informer.problem)
        return "" if self._informer.synced.is_set() else "it has not answered yet"

    async def run(self) -> None:
        """List and watch until cancelled; the first answer wakes the loop even if it is empty."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.run(), name="assignment-watch")
            await self._informer.synced.wait()
            self._wake.set()

    def _take(self, changes: Sequence[Change[Json]]) -> None:
        before, self.body = self.body, changes[-1].new
        self._observe(self.body)
        if _spec_of(before) != _spec_of(self.body):
            self._wake.set()


def _spec_of(body: Json | None) -> tuple[str, int] | None:
    """What tells one spec from another; our own status changes are none."""
    if body is None:
        return None
    return body["metadata"]["uid"], body["metadata"]["generation"]
