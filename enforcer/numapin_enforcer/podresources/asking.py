"""Asks the kubelet which devices there are and which pods have them, in the background."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from math import inf
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, internal_error
from numapin_api.schema.plain import DevicesStatus
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.podresources.devices import (
    Devices,
    Places,
    located,
    reported_before,
    status_of,
)
from numapin_enforcer.podresources.interface import (
    Connect,
    PodResources,
    PodResourcesError,
)
from numapin_enforcer.podresources.pod_rows import PodAnswer, PodRows
from numapin_enforcer.runtime.interface import ContainerRuntime, CriError

LOG: Final = logging.getLogger(__name__)

LEAST_SECONDS: Final = 0.1
"""The least time between two questions.

The kubelet answers 100 in a second, of all its clients, and 10 at once.
Source: kubelet pkg/kubelet/apis/podresources/constants.go.
"""

REGISTERED_SECONDS: Final = (3.0, 12.0)
"""When to look for new resources after a pod has come: it may be that of a device plug-in."""

LOST_SECONDS: Final = 1.0
"""How often to look for a resource that is gone: when it is back, pods that wait for it start."""

LOST_FOR_SECONDS: Final = 300.0
"""How long. Source: kubelet pkg/kubelet/cm/devicemanager/endpoint.go, `endpointStopGracePeriod`."""

MOST_SINGLE: Final = 4
"""Up to this many pods are asked for one by one, more with one list of all sandboxes."""

AGE_SHARE: Final = 10
MIN_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 5.0
"""A pod without a sandbox is asked for again after this fraction of its age."""

LONGEST_MESSAGE: Final = 1024


def _connect(socket: Path) -> AbstractAsyncContextManager[PodResources]:
    """A connection to the kubelet, imported only where it is asked: that saves memory elsewhere."""
    from numapin_enforcer.podresources.client import PodResourcesClient  # noqa: PLC0415

    return PodResourcesClient(socket)


class KubeletDevices:
    """The devices of the node and of its pods, as the kubelet has said last.

    A kubelet without devices that have NUMA nodes is asked only whether there are some by now: once
    a minute, and twice after pods have come. Any other is asked for each new pod as well.
    """

    def __init__(
        self,
        socket: Path | None,
        runtime: ContainerRuntime,
        wake: asyncio.Event,
        clock: Clock | None = None,
        connect: Connect = _connect,
    ) -> None:
        """Args: without a `socket` nothing is asked; `wake` is set when `status` has changed."""
        self._socket, self._runtime, self._wake = socket, runtime, wake
        self._clock, self._connect = clock or SystemClock(), connect
        self._is_needed = self._is_known = self._has_ended = False
        self._places = Places()
        self._resources: tuple[Devices, ...] = ()
        self._pods = PodRows()
        self._answer = PodAnswer()
        self._covered: frozenset[str] = frozenset()
        """The pods that had a cgroup when this answer was asked for."""
        self._is_outdated = False
        """Whether a newer answer may say more of them."""
        self._asked_seconds = -inf
        self._due_seconds = -inf
        """When to ask for all resources again."""
        self._newest_seconds = -inf
        """When the newest pod was seen first."""
        self._lost: dict[str, float] = {}
        """Resources that are gone, and until when to look for them."""
        self._failures = 0
        self.status: DevicesStatus | None = None
        """What a report says; None while the kubelet is not asked."""
        self._worker = Worker(
            "devices",
            self._work,
            expected=(PodResourcesError, CriError),
            failure="the devices of pods are not known",
            wake=wake.set,
            backoff=Backoff(0.1, 10.0),
            clock=self._clock,
        )

    @property
    def is_answering(self) -> bool:
        """Whether the first answer will come in a moment, for all that is known."""
        return self._is_needed and not self._has_ended

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps devices from being known, but for what `status` says."""
        problem = self._worker.problem
        if problem is None or isinstance(problem, (PodResourcesError, CriError)):
            return ()
        return (internal_error("asking the kubelet for devices", problem),)

    async def run(self) -> None:
        """Ask while it is needed, until cancelled; a failure is retried."""
        await self._worker.run()

    def rest(self) -> None:
        """Ask nothing, and say nothing, until the next `observe`."""
        self._is_needed, self.status = False, None

    def resume(self, reported: Mapping[str, object]) -> None:
        """Take over what an enforcer has reported before, until the kubelet answers."""
        if self._is_needed and not self._is_known and reported:
            self._is_known = True
            self._resources, rows = reported_before(reported)
            self._pods.resume(rows)
            self._update()

    def observe(self, pods: Iterable[str], places: Places, *, resynced: bool) -> None:
        """The pods that have a cgroup, and the machine; `resynced` once a minute or so."""
        if self._socket is None:
            return
        now_seconds, before = self._clock.monotonic(), self._pods.seen.keys()
        is_first, self._is_needed, self._places = not self._is_needed, True, places
        is_changed = self._pods.keep(pods, now_seconds)
        if self._pods.seen.keys() - before:
            self._newest_seconds = now_seconds
            self._due_seconds = min(self._due_seconds, now_seconds + REGISTERED_SECONDS[0])
        if resynced:
            self._due_seconds = now_seconds
            self._pods.forget_names()
            self._pods.reopen()
        if resynced or before - self._pods.seen.keys():
            self._is_outdated = True
        if is_changed or resynced or is_first:
            self._update()
            self._worker.request()

    def learn(self, uid: str, name: str) -> None:
        """The runtime says the namespace and name of a pod."""
        if self._is_needed and uid not in self._pods.names:
            self._pods.names[uid] = name
            self._worker.request()

    async def _work(self) -> float | None:
        if not self._is_needed or not self._is_served():
            self._end()
            return None
        try:
            nameless = await self._ask()
        except (PodResourcesError, CriError) as error:
            self._failures += 1
            self._end(str(error) if self._failures > 1 else "")
            raise
        self._failures = 0
        self._end()
        return self._pause_seconds(nameless)

    def _is_served(self) -> bool:
        """Whether there is a socket, or was one."""
        assert self._socket is not None
        try:
            self._socket.stat()
        except (FileNotFoundError, NotADirectoryError):
            return self._is_known
        except OSError:
            pass  # the attempt to connect says why
        return True

    async def _ask(self) -> frozenset[str]:
        """Ask for what is due; returns the pods whose name must be known to go on."""
        if self._is_due() or self._must_list():
            await self._clock.sleep(self._asked_seconds + LEAST_SECONDS - self._clock.monotonic())
            self._asked_seconds = self._clock.monotonic()
            assert self._socket is not None
            async with self._connect(self._socket) as kubelet:
                if self._is_due():
                    self._take(await kubelet.devices(self._places))
                if self._must_list():
                    pods = frozenset(self._pods.seen)
                    self._answer, self._covered = await kubelet.pods(self._places), pods
                    self._is_outdated = False
        if nameless := self._pods.settle(self._answer, self._covered):
            await self._ask_names(nameless)
            nameless = self._pods.settle(self._answer, self._covered)
        return nameless

    def _is_due(self) -> bool:
        return self._clock.monotonic() >= self._due_seconds

    def _must_list(self) -> bool:
        has_devices = bool(located(self._resources) or self._pods.rows)
        unsettled = self._pods.unsettled
        covered = frozenset[str]() if self._is_outdated else self._covered
        return has_devices and not unsettled <= covered

    def _take(self, devices: tuple[Devices, ...]) -> None:
        """All resources of the node, from now on."""
        now_seconds = self._clock.monotonic()
        lost, found = located(self._resources), located(devices)
        lost_until = dict.fromkeys(lost, now_seconds + LOST_FOR_SECONDS) | self._lost
        self._lost = {
            name: until
            for name, until in lost_until.items()
            if name not in found and until > now_seconds
        }
        self._resources, self._is_known = devices, True
        looks = [self._newest_seconds + seconds for seconds in REGISTERED_SECONDS]
        looks += [now_seconds + LOST_SECONDS] if self._lost else []
        self._due_seconds = min((at for at in looks if at > now_seconds), default=inf)

    async def _ask_names(self, uids: frozenset[str]) -> None:
        for uid in uids if len(uids) <= MOST_SINGLE else ("",):
            self._pods.names |= await self._runtime.pods(uid)

    def _pause_seconds(self, nameless: frozenset[str]) -> float | None:
        now_seconds = self._clock.monotonic()
        pauses = [self._due_seconds - now_seconds]
        if ages := [now_seconds - self._pods.seen[uid] for uid in nameless]:
            pauses.append(min(max(min(ages) / AGE_SHARE, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS))
        return None if min(pauses) == inf else min(pauses)

    def _end(self, problem: str = "") -> None:
        """An attempt has ended: have a pass made if that is new."""
        is_first, self._has_ended = not self._has_ended, True
        if self._update(problem) or is_first:
            self._wake.set()

    def _update(self, problem: str | None = None) -> bool:
        """Say what is known now; returns whether that is something else.

        Args:
            problem: why the kubelet does not answer; None for what was said before.
        """
        before = self.status
        message = before.message if problem is None and before is not None else problem or None
        self.status = None
        if self._is_needed and (self._is_known or message):
            cut = message[:LONGEST_MESSAGE] if message else None
            unnamed = self._pods.unnamed(self._answer, self._covered)
            self.status = status_of(self._resources, self._pods.rows, unnamed, cut)
        return self.status != before
