"""Sends the resources of exclusive containers to the runtime, in the background.

The runtime writes the cpuset that it was sent last again at each later update of a container. So
it is sent what the kernel already has, and again whenever that changes.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from numapin_api.conditions.reasons import Obstacle, internal_error
from numapin_api.cpuset import CpuSet, MemSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    ContainerRuntime,
    ContainerState,
    CriError,
    CriNotFoundError,
)

LOG: Final = logging.getLogger(__name__)

NOT_STARTED_SECONDS: Final = 0.25
"""How long to wait for a container that is created but not started: an update that overtakes the
start is acknowledged, and lost."""

GROWTH_SECONDS: Final = 2.0
"""How long a container waits for CPUs that its runtime must write; then the enforcer does."""

NO_CHANGE: Final = ContainerResources(CpuSet())
"""What this process sent for a container that the runtime may have a set for from others."""

Sets = tuple[CpuSet, MemSet]
"""A cgroup's CPUs and NUMA nodes."""

NOTHING: Final[Mapping[str, ContainerResources]] = MappingProxyType({})


@dataclass(slots=True)
class _RuntimeState:
    """What the runtime has for one container, as far as this process knows.

    Invariant: if `acknowledged` is set, the runtime has exactly that and writes nothing else, or
    the container has ended. An update that is being sent clears it, and so does an external
    change; only the runtime's answer sets it. Until then the runtime may write any CPUs in
    `possible`.

    Attributes:
        wanted: the newest resources; None while paused.
        sent: what this process sent last, acknowledged or not; None if nothing.
        acknowledged: see the invariant; None if unknown.
        possible: the CPUs that the runtime may write at its next update of the container.
        repeatable: what the runtime was sent and may write again, by this process or the last one.
        changed_externally: the cpuset was changed externally since the last update was sent.
        growing_since: since when it waits for CPUs that the runtime must write.
        problem: why the last attempt failed; None after a success.
    """

    wanted: ContainerResources | None = None
    sent: ContainerResources | None = None
    acknowledged: ContainerResources | None = None
    possible: CpuSet = CpuSet()
    repeatable: frozenset[ContainerResources] = frozenset()
    changed_externally: bool = False
    growing_since: float | None = None
    problem: CriError | None = None

    @property
    def is_pending(self) -> bool:
        return self.wanted is not None and self.wanted != self.acknowledged

    @property
    def is_stale(self) -> bool:
        return self.wanted is not None and bool(self.possible - self.wanted.cpus)

    def may_have_made(self, found: Sets, meant: Sets) -> bool:
        """Whether a late update may have made the change, or half of it."""
        cpus = {meant[0], *(one.cpus for one in self.repeatable)}
        mems = {meant[1], *(one.mems for one in self.repeatable)}
        return self.is_pending and found[0] in cpus and found[1] in mems

    def want(self, wanted: ContainerResources | None) -> None:
        self.wanted = wanted
        if not self.is_pending:
            self.problem = None

    def begin(self, resources: ContainerResources) -> None:
        """An update is being sent: from now on the runtime has the old or the new resources."""
        self.sent, self.acknowledged = resources, None
        self.possible |= resources.cpus
        self.repeatable |= {resources}

    def acknowledge(self, resources: ContainerResources) -> None:
        """The update was answered without an external change since, or the container ended."""
        self.acknowledged, self.possible, self.problem = resources, resources.cpus, None
        self.repeatable = frozenset({resources})

    def change_externally(self, found: CpuSet) -> None:
        """The cpuset was set to `found`, maybe by an update that the runtime was sent."""
        if self.acknowledged is not None or self.sent is not None:
            self.acknowledged, self.changed_externally = None, True
            self.possible |= found


def _nothing(id_: str, resources: ContainerResources) -> None:
    """Do nothing."""


class RuntimeUpdater:
    """What the runtime must have for containers, and what it was sent."""

    def __init__(
        self, runtime: ContainerRuntime, wake: asyncio.Event, clock: Clock | None = None
    ) -> None:
        """Args: `wake` is set when an answer or a failure changes what must be reported."""
        self._runtime, self._wake, self._clock = runtime, wake, clock or SystemClock()
        self._states: dict[str, _RuntimeState] = {}
        self.on_update: Callable[[str, ContainerResources], object] = _nothing
        """Called when the runtime has made an update, with the container's id; must be quick."""
        self._worker = Worker(
            "runtime-updates",
            self._update,
            expected=(CriError,),
            failure="",
            wake=wake.set,
            clock=self._clock,
        )

    @property
    def sent_ids(self) -> frozenset[str]:
        """The containers that this process sent an update of, acknowledged or not."""
        return frozenset(id_ for id_, state in self._states.items() if state.sent is not None)

    @property
    def pending_ids(self) -> frozenset[str]:
        """The containers of which the runtime may still write what it was sent before."""
        return frozenset(id_ for id_, state in self._states.items() if state.is_pending)

    def sent(self, id_: str) -> ContainerResources | None:
        """What this process sent last for a container, acknowledged or not; None if nothing."""
        state = self._states.get(id_)
        return state.sent if state is not None else None

    def may_grow(self, id_: str) -> bool:
        """Whether this container gains CPUs by an update of its runtime.

        Not if this process has never updated it, if the last update failed, or if it takes too
        long: then the kernel gets the CPUs at once.
        """
        state = self._states.get(id_)
        if state is None or state.sent is None or state.problem is not None:
            return False
        since = state.growing_since
        return since is None or self._clock.monotonic() - since < GROWTH_SECONDS

    def note_growing(self, ids: Collection[str]) -> None:
        """These containers, and no others, wait for CPUs that the runtime must write."""
        for id_, state in self._states.items():
            if id_ not in ids:
                state.growing_since = None
            elif state.growing_since is None:
                state.growing_since = self._clock.monotonic()

    @property
    def stale_cpus(self) -> dict[str, CpuSet]:
        """Container id to the CPUs that the runtime may still write, if it must not have them."""
        return {id_: state.possible for id_, state in self._states.items() if state.is_stale}

    @property
    def problem(self) -> Exception | None:
        """Why the runtime could not be updated: of one container, or a defect; it is retried."""
        refused = self._first_problem()
        unexpected = self._worker.problem
        return refused or (None if isinstance(unexpected, CriError) else unexpected)

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps the runtime from having what it must have."""
        problem = self.problem
        if problem is None:
            return ()
        if not isinstance(problem, CriError):
            return (internal_error("updating the container runtime", problem),)
        return (Obstacle(problem.reason, f"the container runtime was not updated: {problem}"),)

    def want(
        self,
        resources: Mapping[str, ContainerResources],
        previous: Mapping[str, ContainerResources] = NOTHING,
    ) -> None:
        """Send these, by container id, unless the runtime has them; returns at once.

        Containers that are not in `resources` are dropped: they have ended.

        Args:
            resources: what the runtime must have.
            previous: what an earlier process sent it, of containers that this one did not update.
        """
        states = {id_: self._states.get(id_) or _RuntimeState() for id_ in resources}
        for id_, state in states.items():
            if id_ in previous and state.sent is None and not state.possible:
                state.possible = previous[id_].cpus
                state.repeatable = frozenset({previous[id_]})
            state.want(resources[id_])
        self._states = states
        if any(state.is_pending for state in states.values()):
            self._worker.request()

    def may_have_made(self, id_: str, found: Sets, meant: Sets) -> bool:
        """Whether the runtime may have changed this container's cgroup to `found`.

        It repeats what it was sent before with each update of the kubelet, a resize for one; and an
        update of ours can come after the cgroup has its next sets.
        """
        return id_ in self._states and self._states[id_].may_have_made(found, meant)

    def note_external_change(self, id_: str, found: CpuSet) -> None:
        """Send this container's resources again: its cpuset was changed externally to `found`."""
        if id_ in self._states:
            self._states[id_].change_externally(found)

    def pause(self) -> None:
        """Send nothing for now; what the runtime was sent stays known."""
        for state in self._states.values():
            state.want(None)

    async def run(self) -> None:
        """Send what is wanted, one container at a time, until cancelled."""
        await self._worker.run()

    async def _update(self) -> float | None:
        pending = [
            (id_, state.wanted)
            for id_, state in self._states.items()
            if state.wanted is not None and state.is_pending
        ]
        too_early = [await self._update_container(*item) for item in pending]
        if (problem := self._first_problem()) is not None:
            raise problem
        if any(too_early):
            await self._clock.sleep(NOT_STARTED_SECONDS)
            return 0.0
        return None

    async def _update_container(self, id_: str, resources: ContainerResources) -> bool:
        """Update one container; returns whether it is too early, since it has not started."""
        try:
            found = await self._runtime.containers(id_)
            state = self._states.get(id_)
            if state is None or state.wanted != resources:
                return False  # other resources are wanted meanwhile
            if any(one.state is ContainerState.CREATED for one in found):
                return True
            state.changed_externally = False
            if any(one.state is ContainerState.RUNNING for one in found):
                state.begin(resources)
                await self._runtime.update_resources(id_, resources)
                self.on_update(id_, resources)
        except CriNotFoundError:
            pass  # it ended meanwhile
        except CriError as error:
            self._failed(id_, resources, error)
            return False
        self._succeeded(id_, resources)
        return False

    def _succeeded(self, id_: str, resources: ContainerResources) -> None:
        """The runtime has these resources, or the container ended."""
        state = self._states.get(id_)
        if state is None:
            return
        if state.changed_externally:
            self._worker.request()  # the order of the two changes is unknown
            return
        is_news = state.problem is not None or bool(state.possible - resources.cpus)
        state.acknowledge(resources)
        if is_news:
            self._wake.set()

    def _failed(self, id_: str, resources: ContainerResources, error: CriError) -> None:
        state = self._states.get(id_)
        if state is None or state.wanted is None:
            return
        if state.problem is None:
            LOG.warning(
                "could not update a container in the runtime, it will be retried",
                extra={"container": id_, "cpus": resources.cpus, "error": error},
            )
        state.problem = error
        self._wake.set()

    def _first_problem(self) -> CriError | None:
        problems = (state.problem for state in self._states.values())
        return next((one for one in problems if one is not None), None)
