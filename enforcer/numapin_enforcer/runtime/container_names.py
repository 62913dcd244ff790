"""Container ids to container names, from the runtime, in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from numapin_api.conditions.reasons import Obstacle, internal_error
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.runtime.interface import (
    ContainerRuntime,
    CriError,
    CriUnavailableError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeVersion,
)

LOG: Final = logging.getLogger(__name__)

MAX_SINGLE_QUERIES: Final = 4
"""Up to this many ids are asked for one by one, more with one list of all containers."""

MIN_PAUSE_SECONDS: Final = 0.01
MAX_PAUSE_SECONDS: Final = 5.0
AGE_SHARE: Final = 10
"""An id that is not listed is asked for again after this fraction of its waiting time so far."""

PATIENCE_SECONDS: Final = 1.0
"""A runtime that takes longer for an answer is slow, and reported in the status."""

LISTED_WITHIN_SECONDS: Final = 5.0
"""How long a container may run before the runtime lists it; CRI-O needs some 0.1 s."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A name that is needed and not known.

    Attributes:
        since: when it was needed first; once it is answered, when it was answered first.
        is_answered: whether the runtime has answered, and did not list the container.
    """

    since: float
    is_answered: bool = False


class _StreamEndedError(CriError):
    """The stream of events ended without an error; it must be opened again."""


class ContainerNames:
    """Container id to name, of the containers that were needed.

    A sandbox has the empty name. An id that is listed neither as a container nor as a sandbox is
    still being created, so it is asked for again: CRI-O lists a container some 0.1 s after its
    cgroup appears, just before it starts, and then there is little time.
    """

    def __init__(
        self, runtime: ContainerRuntime, wake: asyncio.Event, clock: Clock | None = None
    ) -> None:
        """Args: `wake` is set when a needed name, the version or the problem changes."""
        self._runtime, self._wake, self._clock = runtime, wake, clock or SystemClock()
        self._questions: dict[str, _Question] = {}
        """One for each id whose name is needed and not known."""
        self.known: dict[str, str] = {}
        """Container id to name; replaced, never changed in place."""
        self.problem: CriError | None = None
        """Why the runtime does not answer; None while it does."""
        self.runtime_version: RuntimeVersion | None = None
        self._probe_seconds = 0.0
        self._resolver = self._worker("container-names", self._resolve, Backoff(0.1, 5.0))
        self._prober = self._worker("runtime-version", self._probe, Backoff())
        self._listener = self._worker("runtime-events", self._follow_events, Backoff(0.5, 10.0))

    def need(self, ids: Iterable[str]) -> frozenset[str]:
        """Ask for the names of these containers; returns those that are not known yet."""
        new = _Question(self._clock.monotonic())
        wanted = {id_ for id_ in ids if id_ not in self.known}
        self._questions = {id_: self._questions.get(id_, new) for id_ in wanted}
        if self._since(is_answered=False):
            self._resolver.request()
        return frozenset(wanted)

    @property
    def patience_seconds(self) -> float | None:
        """How long the status can wait for the runtime's answer; None if it must not wait."""
        unanswered = self._since(is_answered=False)
        if self.problem is not None or not unanswered:
            return None
        left = min(unanswered.values()) + PATIENCE_SECONDS - self._clock.monotonic()
        return left if left > 0 else None

    @property
    def slow(self) -> frozenset[str]:
        """The needed containers that the runtime takes long to answer about."""
        is_slow = self.problem is None and self.patience_seconds is None
        return frozenset(self._since(is_answered=False)) if is_slow else frozenset()

    @property
    def unlisted(self) -> frozenset[str]:
        """The needed containers that the runtime did not list when it answered last."""
        return frozenset(self._since(is_answered=True))

    @property
    def long_unlisted(self) -> frozenset[str]:
        """The needed containers that a runtime which answers does not list for some seconds."""
        if self.problem is not None:
            return frozenset()
        listed_by = self._clock.monotonic() - LISTED_WITHIN_SECONDS
        unlisted = self._since(is_answered=True)
        return frozenset(id_ for id_, at in unlisted.items() if at <= listed_by)

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps names from being known."""
        if self.problem is not None:
            return (Obstacle(self.problem.reason, str(self.problem)),)
        workers = (self._resolver, self._prober, self._listener)
        return tuple(
            internal_error("asking the container runtime", worker.problem)
            for worker in workers
            if worker.problem is not None and not isinstance(worker.problem, CriError)
        )

    @property
    def outdated(self) -> str:
        """Why only a restart of this program reaches the runtime again; empty if none is needed."""
        is_outdated = isinstance(self.problem, CriUnavailableError) and self.problem.is_outdated
        return str(self.problem) if is_outdated else ""

    def learn(self, containers: Iterable[RuntimeContainer]) -> None:
        """Take in the containers of an event; wake the loop if it waits for one of them."""
        self._learn({one.id: one.name for one in containers})

    def forget_except(self, ids: Collection[str]) -> None:
        """Drop the names of containers without a cgroup."""
        if not self.known.keys() <= set(ids):
            self.known = {id_: name for id_, name in self.known.items() if id_ in ids}

    async def run(self) -> None:
        """Ask for needed names until cancelled; a failure is retried."""
        await self._resolver.run()

    async def listen(self) -> None:
        """Learn names from the runtime's events until cancelled; that saves most questions.

        A stream that ends or fails is opened again after a back-off. A runtime without events is
        asked for them once.
        """
        self._listener.request()
        await self._listener.run()

    async def probe(self, every_seconds: float) -> None:
        """Ask for the runtime's version periodically, to know that it answers."""
        self._probe_seconds = every_seconds
        self._prober.request()
        await self._prober.run()

    async def _probe(self) -> float:
        try:
            version = await self._runtime.version()
        except CriError as error:
            self._note(error)
            return self._probe_seconds
        self._note(None)
        if version != self.runtime_version:
            self.runtime_version = version
            self._wake.set()
        return self._probe_seconds

    async def _follow_events(self) -> None:
        """Learn from one stream of events; returns only if the runtime has none."""
        try:
            async with aclosing(self._runtime.events()) as events:
                async for containers in events:
                    self.learn(containers)
                    self._listener.note_progress()
        except CriUnsupportedError:
            LOG.info("the runtime has no events; its list is read instead")
            return
        except CriError as error:
            self._note(error)
            raise
        self._wake.set()
        raise _StreamEndedError("the runtime ended the stream of events")

    async def _resolve(self) -> float | None:
        try:
            await self._ask(frozenset(self._questions))
        except CriError as error:
            self._note(error)
            raise
        return self._pause_seconds()

    async def _ask(self, ids: frozenset[str]) -> None:
        queries = ids if len(ids) <= MAX_SINGLE_QUERIES else ("",)
        found: dict[str, str] = {}
        for id_ in queries:
            found |= {one.id: one.name for one in await self._runtime.containers(id_)}
        for id_ in queries if ids - found.keys() else ():
            found |= dict.fromkeys(await self._runtime.sandboxes(id_), "")
        answered = _Question(self._clock.monotonic(), is_answered=True)
        for id_ in ids - found.keys():
            if id_ in self._questions and not self._questions[id_].is_answered:
                self._questions[id_] = answered
        if ids:
            self._note(None)
        if not ids.isdisjoint(found):
            self._learn(found)

    def _learn(self, names: dict[str, str]) -> None:
        """Take in names, also those that are not needed yet; wake the loop if one was."""
        self.known = self.known | names
        needed = self._questions.keys() & names.keys()
        for id_ in needed:
            del self._questions[id_]
        if needed:
            self._wake.set()

    def _since(self, *, is_answered: bool) -> dict[str, float]:
        """The ids of open questions that were answered, or were not, and since when."""
        return {
            id_: one.since for id_, one in self._questions.items() if one.is_answered is is_answered
        }

    def _pause_seconds(self) -> float | None:
        """How long until an unlisted container may be listed; None if there is none."""
        unlisted = self._since(is_answered=True).values()
        if not unlisted:
            return None
        waited_seconds = self._clock.monotonic() - max(unlisted)
        return min(max(waited_seconds / AGE_SHARE, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS)

    def _note(self, error: CriError | None) -> None:
        changed = str(error) != str(self.problem)
        self.problem = error
        if changed:
            if error is not None:
                LOG.warning("the container runtime does not answer", extra={"error": error})
            self._wake.set()

    def _worker(
        self, name: str, work: Callable[[], Awaitable[float | None]], backoff: Backoff
    ) -> Worker:
        return Worker(
            name,
            work,
            expected=(CriError,),
            failure="",
            wake=self._wake.set,
            backoff=backoff,
            clock=self._clock,
        )
