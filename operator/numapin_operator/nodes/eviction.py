"""Evict pods that cannot be placed, where the policy asks for it: slowly, and never another pod."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from numapin_api.nodeassignment import Refusal
from numapin_client.errors import ClientError, ConflictError, NotFoundError
from numapin_operator.cluster import Cluster

PAUSE_SECONDS: Final = 1.0
"""Between two evictions: whoever replaces the pods must not be drawn into a race with us."""

RETRY_SECONDS: Final = 10.0
"""A disruption budget, or the API server, may say yes later."""

_log = logging.getLogger(__name__)


class Evictor:
    """Evicts one pod after the other; each is on its list once."""

    def __init__(
        self,
        cluster: Cluster,
        pause_seconds: float = PAUSE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._pause_seconds, self._retry_seconds = pause_seconds, retry_seconds
        self._waiting: dict[str, Refusal] = {}
        self._wake = asyncio.Event()

    def offer(self, refusals: Iterable[Refusal]) -> None:
        """Have these pods evicted."""
        for refusal in refusals:
            self._waiting.setdefault(refusal.pod_uid, refusal)
            self._wake.set()

    async def run(self) -> None:
        """Evict what was offered, until cancelled. Whoever is still there is offered again."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for refusal in tuple(self._waiting.values()):
                await self._evict(refusal)
                await asyncio.sleep(self._pause_seconds)

    async def _evict(self, refusal: Refusal) -> None:
        pod = {"pod": f"{refusal.namespace}/{refusal.pod}", "reason": refusal.reason}
        try:
            await self._cluster.evict(refusal.namespace, refusal.pod, refusal.pod_uid)
        except (NotFoundError, ConflictError):
            pass  # it has gone, or is a static pod, which nobody can evict
        except ClientError as error:
            _log.warning("a pod could not be evicted", extra=pod | {"error": str(error)})
            asyncio.get_running_loop().call_later(self._retry_seconds, self._wake.set)
            return
        else:
            _log.info("evicted a pod", extra=pod)
        self._waiting.pop(refusal.pod_uid, None)
