"""Evict refused pods where the policy asks for it: slowly, and only after asking again."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from numapin_api.schema.plain_assignment import Refusal
from numapin_client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
)
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_daemon.worker import Worker
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictable import Candidate, candidates
from numapin_operator.nodes.eviction.history import EvictionHistory
from numapin_operator.observe.cache import ClusterState
from numapin_operator.queues.turns import Turns

PAUSE_SECONDS: Final = 1.0
"""Between two evictions: the cluster must have time to start the pods elsewhere."""

RETRY_SECONDS: Final = 10.0
LONGEST_RETRY_SECONDS: Final = 600.0
"""Waits after an eviction that was not possible grow from the first to the second."""

WAITING_PODS: Final = 10_000
"""More are not queued; they are offered again when their node is planned again."""

LINES: Final = 10
"""Failed evictions of one namespace that are logged at once; more are logged once a minute."""

NO_RIGHT: Final = (
    "the operator may not evict pods: apply manifests/components/eviction "
    "(Helm: eviction.enabled), or set onUnsatisfiable: Share in the policy"
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Queued:
    """A pod that waits for its eviction."""

    node: str
    uid: str
    namespace: str
    offered_at: float
    not_before: float
    failures: int = 0
    reported: bool = False


class Evictor:
    """Evicts one pod after the other in the background, of each namespace in turn.

    What is queued is asked again right before its eviction, so the queue may be outdated.

    Attributes:
        history: what was evicted lately, and why.
        on_result: called with `evicted` or `failed` after each attempt.
        pause_seconds: between two evictions.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        events: RefusalEvents,
        leading: asyncio.Event,
        clock: Clock | None = None,
    ) -> None:
        """Evict nothing yet.

        Args:
            cluster: where pods are evicted.
            state: says which pods must be evicted.
            events: takes why a pod could not be evicted.
            leading: set while this operator may write.
            clock: the machine's clock by default.
        """
        self._cluster, self._state, self._events = cluster, state, events
        self._leading, self._clock = leading, clock or SystemClock()
        self._queue: dict[str, _Queued] = {}
        self._turns = Turns[_Queued]()
        self.history = EvictionHistory()
        self.pause_seconds = PAUSE_SECONDS
        self.on_result: Callable[[str], object] = bool
        self._lines = LogLimit(at_once=LINES, per_second=1 / 60, clock=self._clock)
        self._worker = Worker("eviction", self._evict_due, clock=self._clock)

    @property
    def waiting(self) -> int:
        """How many refused pods are queued for their eviction."""
        return len(self._queue)

    def offer(self, node: str) -> None:
        """Queue the refused pods of a node, where its policy wants them evicted."""
        now = self._clock.monotonic()
        for one in candidates(self._state, node):
            if one.pod.uid not in self._queue and len(self._queue) < WAITING_PODS:
                allowed_at = self.history.allowed_at(one.cause, now)
                queued = _Queued(node, one.pod.uid, one.pod.namespace, now, allowed_at)
                self._queue[queued.uid] = queued
                self._turns.add(queued.namespace, queued)
                self._worker.request()

    async def run(self) -> None:
        """Evict until cancelled."""
        await self._worker.run()

    async def _evict_due(self) -> float | None:
        """Evict the pods whose time has come; return in how many seconds the next one is due."""
        while (queued := self._turns.take(self._is_due)) is not None:
            try:
                await self._leading.wait()
                candidate = self._ask_again(queued)
                # If its eviction fails unexpectedly, the others must not wait for this pod.
                queued.not_before = self._clock.monotonic() + LONGEST_RETRY_SECONDS
                if candidate is None or await self._evict(candidate, queued):
                    del self._queue[queued.uid]
            finally:
                if queued.uid in self._queue:
                    self._turns.add(queued.namespace, queued)
            if candidate is not None:
                await self._clock.sleep(self.pause_seconds)
        if not self._queue:
            return None
        next_at = min(one.not_before for one in self._queue.values())
        return max(0.0, next_at - self._clock.monotonic())

    def _is_due(self, queued: _Queued) -> bool:
        return queued.not_before <= self._clock.monotonic()

    def _ask_again(self, queued: _Queued) -> Candidate | None:
        """The pod, if it must still be evicted."""
        offered = candidates(self._state, queued.node)
        return next((one for one in offered if one.pod.uid == queued.uid), None)

    async def _evict(self, candidate: Candidate, queued: _Queued) -> bool:
        """Evict a pod; False if that must be tried again."""
        refusal, offered_at = candidate.refusal, queued.offered_at
        pod = {
            POD_UID: refusal.pod_uid,
            "pod": f"{refusal.namespace}/{refusal.pod}",
            "node": queued.node,
            "reason": refusal.reason,
        }
        try:
            await self._cluster.evict(refusal.namespace, refusal.pod, refusal.pod_uid)
        except (NotFoundError, ConflictError):
            return True  # it is gone, or another pod has its name
        except ClientError as error:
            delay_seconds = self._postpone(queued, error)
            if (more := self._lines.admit(queued.namespace)) is not None:
                why = {"error": _why(error), "again_in_seconds": round(delay_seconds, 1)}
                _log.warning("cannot evict a pod", extra={**pod, **why, **more})
            self._explain(refusal, queued, error)
            self.on_result("failed")
            return False
        _log.info("evicted a pod", extra=pod)
        self.history.evicted(candidate.cause, offered_at, self._clock.monotonic())
        self.on_result("evicted")
        return True

    def _postpone(self, queued: _Queued, error: ClientError) -> float:
        """Try again later, and later with each failure; return in how many seconds."""
        delay_seconds = min(RETRY_SECONDS * 2.0 ** min(queued.failures, 30), LONGEST_RETRY_SECONDS)
        delay_seconds = max(delay_seconds, error.retry_after_seconds or 0.0)
        queued.failures += 1
        queued.not_before = self._clock.monotonic() + delay_seconds
        return delay_seconds

    def _explain(self, refusal: Refusal, queued: _Queued, error: ClientError) -> None:
        """Say once on the pod why it is not evicted, unless the API server is only overloaded."""
        if queued.reported or not isinstance(error, ApiError) or error.is_overload:
            return
        queued.reported = True
        why = _why(error)
        self._events.offer([refusal], f"it is not evicted yet, and is tried again later: {why}")


def _why(error: ClientError) -> str:
    """Why a pod could not be evicted, and what to do if the operator may evict none."""
    if isinstance(error, ForbiddenError) and error.lacks_right:
        return NO_RIGHT
    if not isinstance(error, ApiError):
        return str(error)
    return " ".join(one for one in (error.message, *(c.message for c in error.causes)) if one)
