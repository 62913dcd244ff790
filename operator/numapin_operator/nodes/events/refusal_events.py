"""Events about pods: one for each refusal, some about pods that are placed, never a flood."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from numapin_api.schema.plain_assignment import NodeAssignmentSpec, Refusal
from numapin_client.errors import ApiError, ClientError, ConnectionFailedError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_daemon.worker import Worker
from numapin_operator.cluster import Cluster, PodEvent
from numapin_operator.queues.turns import Turns

QUIET_SECONDS: Final = 60.0
"""How long no second Event is posted about the same container and the same reason."""

ATTEMPTS: Final = 8
"""How often an Event is posted while the API server is overloaded or out of reach."""

WAITING_EVENTS: Final = 1000
"""Events about refusals that wait at once."""

MOST_NOTICES: Final = 500
"""Events that only inform and wait, and how many of them are posted at once after a quiet time."""

NOTICES_PER_SECOND: Final = 20.0
"""Events that only inform, in the long run, on all nodes together."""

LINES_PER_SECOND: Final = 1 / 60
"""Lines in the log about lost Events of one namespace, and about dropped ones."""

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
    """An Event to be posted, of which refusal if of any, and how often that has failed."""

    event: PodEvent
    subject: Subject | None = None
    attempts: int = 0


class RefusalEvents:
    """Posts Events one after the other in the background, so that planning never waits for one.

    The pods of each namespace have their turn. Where too many wait, the namespace of which most
    wait loses its last ones.
    """

    def __init__(self, cluster: Cluster, clock: Clock | None = None) -> None:
        self._cluster, self._clock = cluster, clock or SystemClock()
        self._refusals, self._notices = Turns[_Waiting](), Turns[_Waiting]()
        self._dropped = 0
        self._budget = TokenBucket(MOST_NOTICES, NOTICES_PER_SECOND)
        self._lines = LogLimit(per_second=LINES_PER_SECOND, clock=self._clock)
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
            self._remember(subject, now)
            waiting = _Waiting(event_about(refusal, consequence), subject)
            self._refusals.add(refusal.namespace, waiting)
            if len(self._refusals) > WAITING_EVENTS:
                self._dropped += 1
                self._forget(self._refusals.drop())
            self._worker.request()

    def inform(self, notices: Iterable[PodEvent]) -> None:
        """Have Events posted that only inform, at a limited pace; a flood is left out."""
        for event in notices:
            self._notices.add(event.namespace, _Waiting(event))
            if len(self._notices) > MOST_NOTICES:
                _log.debug("left an Event out", extra=_about(self._notices.drop().event))
            self._worker.request()

    async def run(self) -> None:
        """Post until cancelled; what waits then is dropped.

        A lost Event loses no information: the spec has the refusal.
        """
        try:
            await self._worker.run()
        finally:
            self._refusals.clear()
            self._notices.clear()

    async def _post_waiting(self) -> float | None:
        """Post what waits; what the server cannot take now is posted after a back-off.

        Returns:
            When the next Event that only informs may be posted, in seconds; None if none waits.
        """
        self._log_dropped()
        failed, failure = list[tuple[Turns[_Waiting], _Waiting]](), None
        for _ in range(len(self._refusals) + len(self._notices)):
            for turns in (self._refusals, self._notices):
                waiting = self._next(turns)
                if waiting is not None and (error := await self._post(waiting)) is not None:
                    failed.append((turns, waiting))
                    failure = error
        for turns, waiting in failed:
            turns.add(waiting.event.namespace, waiting)
        if failure is not None:
            raise failure
        return 1 / NOTICES_PER_SECOND if self._notices else None

    def _next(self, turns: Turns[_Waiting]) -> _Waiting | None:
        """The Event whose turn it is; None if none waits, or may be posted now."""
        paced = turns is self._notices and len(turns) > 0
        if paced and not self._budget.take(1, self._clock.monotonic()):
            return None
        return turns.take()

    async def _post(self, waiting: _Waiting) -> ClientError | None:
        """Post an Event; returns why it must be posted later, None if not."""
        try:
            await self._cluster.post_event(waiting.event)
        except ClientError as error:
            waiting.attempts += 1
            if waiting.attempts < ATTEMPTS and _may_succeed_later(error):
                return error
            self._log_lost(waiting.event, error)
        return None

    def _log_lost(self, event: PodEvent, error: ClientError) -> None:
        if (more := self._lines.admit(event.namespace)) is not None:
            about = _about(event) | {"error": str(error)}
            _log.warning("cannot post an Event", extra={**about, **more})

    def _log_dropped(self) -> None:
        if self._dropped and self._lines.admit() is not None:
            _log.warning("too many Events wait, some were dropped", extra={"count": self._dropped})
            self._dropped = 0

    def _forget(self, dropped: _Waiting) -> None:
        """Have a refusal offered again whose Event was dropped."""
        if dropped.subject is not None:
            self._offered_at.pop(dropped.subject, None)

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
