"""Events about pods: one for each refusal, some about pods that are placed, never a flood."""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from numapin_api.nodeassignment import NodeAssignmentSpec, Refusal
from numapin_client.errors import ApiError, ClientError, ConnectionFailedError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.logs import POD_UID
from numapin_daemon.rate_limit import TokenBucket
from numapin_daemon.worker import Worker
from numapin_operator.api_server import Cluster, PodEvent

QUIET_SECONDS: Final = 60.0
"""How long no second Event is posted about the same container and the same reason."""

ATTEMPTS: Final = 8
"""How often an Event is posted while the API server is overloaded or out of reach."""

WAITING_EVENTS: Final = 1000
MOST_NOTICES: Final = WAITING_EVENTS // 2
"""Events that only inform, at once. Refusals always have the other half of the room."""

NOTICES_PER_SECOND: Final = 20.0
"""Events that only inform, in the long run, on all nodes together."""

REMEMBERED_SUBJECTS: Final = 10_000

KEEPS: Final = "it keeps what it has and is tried again whenever CPUs or memory become free"
"""What happens to a container that cannot be resized."""

_log = logging.getLogger(__name__)

Subject = tuple[str, str | None, str, str]


def fresh_refusals(before: Iterable[Refusal], after: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """The refusals of `after` that `before` lacks, by pod, container and reason.

    Messages are not compared: their numbers change whenever a neighbour starts or ends.
    """
    known = {_subject(refusal) for refusal in before}
    return tuple(refusal for refusal in after if _subject(refusal) not in known)


def fresh_waits(
    before: NodeAssignmentSpec | None, after: NodeAssignmentSpec
) -> tuple[Refusal, ...]:
    """The resizes that wait in `after`, and did not in `before` for the same reason."""
    earlier = before.refused_resizes if before else None
    return fresh_refusals(earlier or (), after.refused_resizes or ())


def event_about(refusal: Refusal, consequence: str) -> PodEvent:
    """The Event about a refusal, with what happens to the pod now."""
    prefix = f"container {refusal.container}: " if refusal.container else ""
    return PodEvent(
        namespace=refusal.namespace,
        pod=refusal.pod,
        uid=refusal.pod_uid,
        reason=refusal.reason,
        note=f"{prefix}{refusal.message}; {consequence}",
    )


@dataclass(slots=True)
class _Waiting:
    """An Event to be posted, and how often that has failed."""

    event: PodEvent
    attempts: int = 0


class RefusalEvents:
    """Posts Events one after the other in the background, so that planning never waits for one."""

    def __init__(self, cluster: Cluster, clock: Clock | None = None) -> None:
        self._cluster, self._clock = cluster, clock or SystemClock()
        self._waiting: deque[_Waiting] = deque()
        self._dropped = 0
        self._notices = TokenBucket(MOST_NOTICES, NOTICES_PER_SECOND)
        self._offered_at: dict[Subject, float] = {}
        self._worker = Worker(
            "refusal events",
            self._post_waiting,
            expected=(ClientError,),
            failure="cannot post Events, they are posted later",
            clock=self._clock,
        )

    def offer(self, refusals: Iterable[Refusal], consequence: str) -> None:
        """Have Events posted, except about what was offered lately and what is a flood."""
        now = self._clock.monotonic()
        for refusal in refusals:
            subject = (*_subject(refusal), consequence)
            if now - self._offered_at.get(subject, -QUIET_SECONDS) < QUIET_SECONDS:
                continue
            self._worker.request()
            if len(self._waiting) >= WAITING_EVENTS:
                self._dropped += 1
                continue
            self._remember(subject, now)
            self._waiting.append(_Waiting(event_about(refusal, consequence)))

    def inform(self, notices: Iterable[PodEvent]) -> None:
        """Have Events posted that only inform; those that come too fast are left out."""
        now = self._clock.monotonic()
        for event in notices:
            if len(self._waiting) >= MOST_NOTICES or not self._notices.take(1, now):
                _log.debug("left an Event out", extra=_about(event))
                continue
            self._waiting.append(_Waiting(event))
            self._worker.request()

    async def run(self) -> None:
        """Post until cancelled; what waits then is dropped.

        A lost Event loses no information: the spec has the refusal.
        """
        try:
            await self._worker.run()
        finally:
            self._waiting.clear()

    async def _post_waiting(self) -> None:
        """Post what waits; what the server cannot take now is posted after a back-off."""
        if self._dropped:
            _log.warning("too many Events wait, some were dropped", extra={"count": self._dropped})
            self._dropped = 0
        failure: ClientError | None = None
        for _ in range(len(self._waiting)):
            waiting = self._waiting.popleft()
            try:
                await self._cluster.post_event(waiting.event)
            except ClientError as error:
                waiting.attempts += 1
                if waiting.attempts < ATTEMPTS and _may_succeed_later(error):
                    self._waiting.append(waiting)
                    failure = error
                else:
                    self._log_lost(waiting.event, error)
        if failure is not None:
            raise failure

    def _log_lost(self, event: PodEvent, error: ClientError) -> None:
        _log.warning("cannot post an Event", extra=_about(event) | {"error": str(error)})

    def _remember(self, subject: Subject, now: float) -> None:
        self._offered_at.pop(subject, None)
        self._offered_at[subject] = now
        if len(self._offered_at) > REMEMBERED_SUBJECTS:
            del self._offered_at[next(iter(self._offered_at))]


def _about(event: PodEvent) -> dict[str, str]:
    """The fields of a log line about an Event."""
    pod = f"{event.namespace}/{event.pod}"
    return {POD_UID: event.uid, "pod": pod, "reason": event.reason}


def _may_succeed_later(error: ClientError) -> bool:
    """Whether the server was not reached or is overloaded, whatever the Event is about."""
    if isinstance(error, ApiError):
        return error.is_overload
    return isinstance(error, ConnectionFailedError)


def _subject(refusal: Refusal) -> tuple[str, str | None, str]:
    return refusal.pod_uid, refusal.container, refusal.reason
