"""Evict refused pods where the policy asks for it: slowly, and never another pod of that name."""

import logging
from collections.abc import Iterable
from typing import Final

from numapin_api.nodeassignment import Refusal
from numapin_client.errors import ClientError, ConflictError, NotFoundError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_operator.cluster import Cluster

PAUSE_SECONDS: Final = 1.0
"""Between two evictions: a controller that replaces the pods must not be drawn into a race."""

RETRY_SECONDS: Final = 10.0
"""A disruption budget, or the API server, may allow the eviction later."""

_log = logging.getLogger(__name__)


class Evictor:
    """Evicts one pod after the other in the background; each pod is queued once."""

    def __init__(self, cluster: Cluster, clock: Clock | None = None) -> None:
        self._cluster, self._clock = cluster, clock or SystemClock()
        self._waiting: dict[str, Refusal] = {}
        self._worker = Worker("eviction", self._evict_waiting, clock=self._clock)

    def offer(self, refusals: Iterable[Refusal]) -> None:
        """Have the pods of these refusals evicted."""
        for refusal in refusals:
            self._waiting.setdefault(refusal.pod_uid, refusal)
            self._worker.request()

    async def run(self) -> None:
        """Evict until cancelled. A pod that still exists after its eviction is offered again."""
        await self._worker.run()

    async def _evict_waiting(self) -> float | None:
        """Evict each queued pod; one that cannot be evicted now stays queued."""
        for refusal in tuple(self._waiting.values()):
            if await self._evict(refusal):
                del self._waiting[refusal.pod_uid]
            await self._clock.sleep(PAUSE_SECONDS)
        return RETRY_SECONDS if self._waiting else None

    async def _evict(self, refusal: Refusal) -> bool:
        """Evict a pod; False if that must be tried again."""
        pod = {"pod": f"{refusal.namespace}/{refusal.pod}", "reason": refusal.reason}
        try:
            await self._cluster.evict(refusal.namespace, refusal.pod, refusal.pod_uid)
        except (NotFoundError, ConflictError):
            return True  # it is gone, or it is a static pod, which cannot be evicted
        except ClientError as error:
            _log.warning("cannot evict a pod", extra=pod | {"error": str(error)})
            return False
        _log.info("evicted a pod", extra=pod)
        return True
