"""Renews the Lease of this node: by it the operator sees that the enforcer does its work."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

from numapin_api import names
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import LEASES, Json, Key, Resource
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff

LOG: Final = logging.getLogger(__name__)

LEASE_SECONDS: Final = 50
"""After so long without a renewal the operator reports this enforcer as silent.

It looks each 5 s, so a dead enforcer is seen within a minute.
"""

RENEW_SECONDS: Final = 20.0
"""How often: an attempt may stay without an answer, or several be refused, in `LEASE_SECONDS`.

A renewal costs the API server 0.9 to 1.3 ms: for 5,000 nodes a quarter of a CPU, half of what their
kubelets take, which renew each 10 s. A tenth of what a status each 5 minutes cost, with 125
exclusive containers on each node, would need 75 s or more: then no dead enforcer is seen within a
minute.
"""

RETRY_SECONDS: Final = 5.0
"""How soon after a renewal that failed, or while there is nothing to renew."""

REFUSED_SECONDS: Final = 300.0
"""How late at most after refusals in a row, which double the time from `RETRY_SECONDS` on.

A role that is older than this enforcer refuses all of a fleet, for as long as it stays. An API
server that has just started refuses as well, for a moment.
"""

TIMEOUT_SECONDS: Final = 10.0
"""After so long without an answer a renewal is tried again."""

JITTER: Final = 0.1
"""By what part of them these times differ, so that enforcers that started together spread."""


class LeaseApi(Protocol):
    """What the Lease needs of the API server."""

    async def merge_patch(self, resource: Resource, key: Key, patch: Json) -> Json:
        """Change some fields of an object."""
        ...

    async def create(self, resource: Resource, body: Json) -> Json:
        """Create an object."""
        ...


class NodeLease:
    """The Lease of this node. A renewal that fails harms nothing but itself."""

    def __init__(
        self,
        api: LeaseApi,
        lease: Key,
        hung: Callable[[], object],
        assignment: Callable[[], Json | None],
        clock: Clock | None = None,
    ) -> None:
        """Renew nothing yet.

        Args:
            api: an open client.
            lease: the Lease; its name is the node's.
            hung: whether passes do not do their work; nothing is renewed then.
            assignment: the NodeAssignment, with which the Lease goes; None while there is none.
            clock: the machine's by default.
        """
        self._api, self._lease, self._hung = api, lease, hung
        self._assignment, self._clock = assignment, clock or SystemClock()
        self._problem = ""
        self._refusals = Backoff(RETRY_SECONDS, REFUSED_SECONDS, spread=0.0)

    async def run(self) -> NoReturn:
        """Renew until cancelled."""
        while True:
            seconds = await self._next()
            await self._clock.sleep(seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311

    async def _next(self) -> float:
        """Renew if passes do their work; the seconds until the next attempt."""
        assignment = self._assignment()
        if assignment is None or self._hung():
            return RETRY_SECONDS
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._renew(assignment)
        except (ClientError, TimeoutError) as error:
            if (problem := type(error).__name__) != self._problem:
                LOG.warning("the node's Lease could not be renewed", extra={"error": error})
            self._problem = problem
            is_refused = isinstance(error, (ForbiddenError, NotFoundError))
            return self._refusals.next_seconds() if is_refused else RETRY_SECONDS
        self._problem = ""
        self._refusals.reset()
        return RENEW_SECONDS

    async def _renew(self, assignment: Json) -> None:
        spec = {
            "holderIdentity": self._lease.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": self._clock.now_text(microseconds=True),
        }
        try:
            await self._api.merge_patch(LEASES, self._lease, {"spec": spec})
        except NotFoundError:
            metadata = {
                "name": self._lease.name,
                "namespace": self._lease.namespace,
                "labels": names.HEARTBEAT_LABELS,
                "ownerReferences": [_owner(assignment)],
            }
            await self._api.create(LEASES, {"metadata": metadata, "spec": spec})


def _owner(assignment: Json) -> Json:
    """The NodeAssignment, with which the garbage collector deletes the Lease."""
    metadata = assignment["metadata"]
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.NODE_ASSIGNMENT_KIND,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
