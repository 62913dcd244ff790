"""One object of this node besides the NodeAssignment, as the API server has it now."""

from collections.abc import Callable, Sequence
from typing import Final

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import Hooks, InformerTiming
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import Json, Resource
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker

REFUSED_SECONDS: Final = 300.0
"""How long at most between two attempts while the kind is unknown or reading it is forbidden.

CRDs and a role that are older than this enforcer refuse all of a fleet, for as long as they stay.
"""


class ObjectWatch:
    """Reports each version of an object, and that there is none.

    That the API server does not know the kind, or forbids to read it, means that there is none.
    While it does not answer at all nothing is reported.
    """

    def __init__(
        self,
        api: ApiClient,
        resource: Resource,
        node_name: str,
        observe: Callable[[Json | None], object],
        clock: Clock | None = None,
    ) -> None:
        """Args: `observe` is called with each version of the object; None while there is none."""
        clock = clock or SystemClock()
        source = Source(resource, field_selector=f"metadata.name={node_name}")
        timing = InformerTiming(refused_cap_seconds=REFUSED_SECONDS, clock=clock)
        self._informer: Informer[Json] = Informer(
            api, source, lambda body: body, self._take, timing
        )
        self._informer.hooks = Hooks(listed=self._note_list, failed=self._note_failure)
        self._observe = observe
        self._body: Json | None = None
        self._worker = Worker(f"{resource.plural}-watch", self._informer.run, clock=clock)

    async def run(self) -> None:
        """List and watch until cancelled."""
        self._worker.request()
        await self._worker.run()

    def _take(self, changes: Sequence[Change[Json]]) -> None:
        self._body = changes[-1].new
        self._observe(self._body)

    def _note_list(self, _version: str) -> None:
        """A list is complete: without the object, nothing has changed, and it is missing."""
        self._observe(self._body)

    def _note_failure(self, error: ClientError) -> None:
        if isinstance(error, (ForbiddenError, NotFoundError)):
            self._observe(None)
