"""Watches the Leases of the enforcers, and has those reported that are silent."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NoReturn, Protocol

from numapin_api import names
from numapin_client.cache.informer import Informer
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, ConflictError
from numapin_client.resources import LEASES, Key
from numapin_daemon.clock import Clock
from numapin_operator.heartbeats.silence import Beat, Listening
from numapin_operator.observe.informers import TIMING, named

LOOK_SECONDS: Final = 5.0
"""How often all Leases are compared: 5,000 take 2 ms. A dead enforcer is seen so much later."""

AT_ONCE: Final = 8
"""Nodes that are reported at the same time. A switch that fails takes hundreds away."""

_log = logging.getLogger(__name__)


class Leases(Protocol):
    """The Leases as last observed; an `Informer` is one."""

    @property
    def items(self) -> Mapping[Key, Beat]:
        """Each Lease by its key; its name is the node's."""

    @property
    def problem(self) -> Exception | None:
        """Why they cannot be watched; None if they can."""


class Marks(Protocol):
    """Reports silent enforcers."""

    async def mark(self, node: str, beat: Beat) -> None:
        """Report one; a ClientError says that it was not."""


def lease_informer(
    api: ApiClient, namespace: str, wants: Callable[[str], bool] | None = None
) -> Informer[Beat]:
    """The Leases of enforcers, in the namespace of this installation; `wants` chooses nodes."""
    chosen = ",".join(f"{key}={value}" for key, value in names.HEARTBEAT_LABELS.items())
    source = Source(LEASES, namespace=namespace, label_selector=chosen)
    return Informer(api, source, Beat.decode, timing=replace(TIMING, sieve=wants and named(wants)))


class Watcher:
    """Looks at the Leases for as long as a term lasts; each term gives every node its time."""

    def __init__(self, leases: Leases, marks: Marks, clock: Clock) -> None:
        """Have heard nothing yet."""
        self._leases, self._marks, self._clock = leases, marks, clock
        self._listening = Listening(clock.monotonic())

    async def run(self) -> NoReturn:
        """Look, and report who is silent, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look once. While the API server cannot be watched, nobody is silent."""
        beats = {key.name: beat for key, beat in self._leases.items.items()}
        seen = self._listening.look(beats, self._clock.monotonic())
        self._listening = seen if self._leases.problem is None else seen.again()
        silent = self._listening.silent()
        for start in range(0, len(silent), AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for node in silent[start : start + AT_ONCE]:
                    tasks.create_task(self._mark(node), name=f"mark {node}")

    async def _mark(self, node: str) -> None:
        """Report one node. If the API server does not answer, it was not the enforcer."""
        try:
            await self._marks.mark(node, self._listening.nodes[node].beat)
        except ConflictError:
            return  # again at the next look
        except ClientError as error:
            about = {"node": node, "error": str(error)}
            _log.warning("a silent enforcer cannot be reported", extra=about)
            self._listening = self._listening.again()
        else:
            self._listening = self._listening.done(node)
