"""Tell about refused pods in Events: once for each refusal, never as a flood."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from numapin_api.nodeassignment import Refusal
from numapin_client.errors import ClientError
from numapin_operator.cluster import Cluster, PodNews

QUIET_SECONDS: Final = 60.0
"""How long the same container's refusal for the same reason is not told again."""

WAITING_NEWS: Final = 1000
REMEMBERED: Final = 10_000

_log = logging.getLogger(__name__)

Subject = tuple[str, str | None, str]


def fresh_refusals(before: Iterable[Refusal], after: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """What `after` refuses that `before` did not, or not for that reason; pure.

    New numbers in a message are no news: they change whenever any neighbour comes or goes.
    """
    known = {_subject(refusal) for refusal in before}
    return tuple(refusal for refusal in after if _subject(refusal) not in known)


def news_of(refusal: Refusal, fate: str) -> PodNews:
    """The Event that tells of a refusal, and of what becomes of the pod."""
    whom = f"container {refusal.container}: " if refusal.container else ""
    return PodNews(
        namespace=refusal.namespace,
        pod=refusal.pod,
        uid=refusal.pod_uid,
        reason=refusal.reason,
        note=f"{whom}{refusal.message}; {fate}",
    )


class Teller:
    """Posts Events one after the other, so that no node's planning ever waits for one."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._waiting: asyncio.Queue[PodNews] = asyncio.Queue(WAITING_NEWS)
        self._told: dict[Subject, float] = {}

    def offer(self, refusals: Iterable[Refusal], fate: str) -> None:
        """Have these told; those told a moment ago are left out, and so is what floods."""
        now = self._clock()
        for refusal in refusals:
            subject = _subject(refusal)
            if now - self._told.get(subject, -QUIET_SECONDS) < QUIET_SECONDS:
                continue
            if self._waiting.full():
                _log.warning("too many refusals to tell", extra={"pod": refusal.pod})
                continue
            self._remember(subject, now)
            self._waiting.put_nowait(news_of(refusal, fate))

    async def run(self) -> None:
        """Post what was offered, until cancelled. A lost Event loses nothing: the spec has it."""
        while True:
            news = await self._waiting.get()
            try:
                await self._cluster.tell(news)
            except ClientError as error:
                _log.warning(
                    "an Event could not be posted",
                    extra={"pod": f"{news.namespace}/{news.pod}", "error": str(error)},
                )

    def _remember(self, subject: Subject, now: float) -> None:
        self._told.pop(subject, None)
        self._told[subject] = now
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]


def _subject(refusal: Refusal) -> Subject:
    return refusal.pod_uid, refusal.container, refusal.reason
