"""This node's NodeAssignment, as the API server has it now."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from numapin_api.names import ALPHA
from numapin_client.cache.informer import Informer
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import NODE_ASSIGNMENTS, Json, Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker

LOG: Final = logging.getLogger(__name__)

GONE_SECONDS: Final = 60.0
"""How long the API server must say without a break that it has no object of this node."""

KIND_GONE_SECONDS: Final = 600.0
"""The same while it says that it does not know the kind. It says so for seconds when it starts, and
for minutes when the CRD is replaced."""

_OLDER: Final = replace(NODE_ASSIGNMENTS, version=ALPHA)
"""All that CRDs of 0.1 serve: an object that is there is not gone, although it is not watched."""

LOOK_SECONDS: Final = 5.0
"""How often to look whether the object is missing."""


class AssignmentWatch:
    """The newest object, and whether the watch works."""

    def __init__(
        self,
        api: ApiClient,
        node_name: str,
        observe: Callable[[Json | None], None],
        wake: asyncio.Event,
        clock: Clock | None = None,
    ) -> None:
        """Args: `observe` is called with each version of the object; None once deleted."""
        self._api, self._key, self._clock = api, Key(node_name), clock or SystemClock()
        source = Source(NODE_ASSIGNMENTS, field_selector=f"metadata.name={node_name}")
        self._informer: Informer[Json] = Informer(api, source, lambda body: body, self._take)
        self._observe, self._wake = observe, wake
        self._follower = Worker("assignment-watch", self._follow, wake=wake.set, clock=self._clock)
        self._absence = Worker(
            "assignment-absence",
            self._look_for_absence,
            expected=(ClientError,),
            failure="it is not known whether the NodeAssignment is gone",
            clock=self._clock,
        )
        self._unobserved = False
        """Whether observing `body` has failed."""
        self._missing: tuple[float, float] | None = None
        """Since when the object is missing, and after how long it counts as gone."""
        self.received_at = 0.0
        """When the newest spec was received, by the clock's monotonic time."""
        self.gone = False
        """Whether the object was deleted, and nothing may be enforced any more."""
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

    def age_seconds(self) -> float:
        """How long ago the API server was heard last; see `Informer.heard_at`."""
        return self._clock.monotonic() - self._informer.heard_at

    async def run(self) -> None:
        """List and watch until cancelled; the first answer wakes the loop even if it is empty."""
        self._follower.request()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run(), name="assignment-watch")
            self._absence.request()
            tasks.create_task(self._absence.run(), name="assignment-absence")
            await self._informer.synced.wait()
            self._wake.set()

    async def _follow(self) -> None:
        """Follow the object; one whose observation failed is observed again first."""
        if self._unobserved:
            self._pass_on()
        await self._informer.run()

    async def _look_for_absence(self) -> float:
        """Set `gone` once the object has been missing long enough, and a direct read confirms it.

        An API server that does not answer says nothing: the time then starts again.
        """
        delay_seconds, now = self._absence_delay_seconds(), self._clock.monotonic()
        if delay_seconds is None or self.gone:
            self._missing = None
            return LOOK_SECONDS
        if self._missing is None or self._missing[1] != delay_seconds:
            self._missing = (now, delay_seconds)
        if now - self._missing[0] < delay_seconds:
            return LOOK_SECONDS
        self._missing = None
        if await self._is_gone():
            LOG.info("this node has no NodeAssignment", extra={"node": self._key.name})
            self.gone, self.body = True, None
            self._observe(None)
            self._wake.set()
        return LOOK_SECONDS

    async def _is_gone(self) -> bool:
        """Whether the API server has no such object, in this version or in that of 0.1."""
        for resource in (NODE_ASSIGNMENTS, _OLDER):
            try:
                await self._api.get(resource, self._key)
            except NotFoundError:
                continue
            return False
        return True

    def _absence_delay_seconds(self) -> float | None:
        """After how long the object counts as gone; None if it is there, or that is unknown."""
        problem = self._informer.problem
        if isinstance(problem, NotFoundError):
            return KIND_GONE_SECONDS
        unknown = self.problem or problem is not None
        return None if unknown or self.body is not None else GONE_SECONDS

    def _take(self, changes: Sequence[Change[Json]]) -> None:
        before, self.body = self.body, changes[-1].new
        self.gone &= self.body is None
        self._pass_on()
        if _spec_of(before) != _spec_of(self.body):
            self.received_at = self._clock.monotonic()
            self._wake.set()

    def _pass_on(self) -> None:
        self._unobserved = True
        self._observe(self.body)
        self._unobserved = False
        self._follower.note_progress()


def _spec_of(body: Json | None) -> tuple[str, int] | None:
    """The object and its generation, which a change of the status does not change."""
    if body is None:
        return None
    return body["metadata"]["uid"], body["metadata"]["generation"]
