"""Execute a chaos plan: start and end the pods, and inject the faults meanwhile."""

import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from numapin_campaigns.chaos.cluster_state import ClusterState, PodState
from numapin_campaigns.chaos.plan import ChaosPlan, End, PlannedPod
from numapin_campaigns.chaos.pods import manifest, resize
from numapin_campaigns.faults.target import Inject
from numapin_campaigns.frame.observe import PODS, until_answered
from numapin_campaigns.frame.plan import Fault
from numapin_campaigns.parts.all_parts import Parts
from numapin_lab.components.build import Say
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab

TICK_SECONDS: Final = 0.02
SHARED_AT_ONCE: Final = 5
STUCK_SECONDS: Final = 300.0
PROGRESS_EVERY: Final = 20


@dataclass(slots=True)
class ActivePod:
    """A pod that was created and is not gone yet."""

    pod: PlannedPod
    started_at: float | None = None
    ended_at: float | None = None
    """When it was deleted, also after it has ended by itself."""
    resized: int = 0
    """How many of its resizes have been asked for."""


@dataclass
class Driver:
    """Starts and ends pods as planned; each `tick` does what is due.

    `starts` counts the pods created so far, which the faults wait for; `ends` the ways in which
    they ended, `resizes` what the API server answered to them.
    """

    lab: RunningLab
    cluster_state: ClusterState
    plan: ChaosPlan
    progress: Say
    starts: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    resizes: Counter[str] = field(default_factory=Counter)
    _active: dict[str, ActivePod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._exclusive, self._shared = (
            deque(self.plan.exclusive_pods),
            deque(self.plan.shared_pods),
        )
        self._progress_at = time.monotonic()

    @property
    def done(self) -> bool:
        """Whether every pod has started and is gone."""
        return not (self._exclusive or self._shared or self._active)

    def tick(self) -> None:
        """Do what is due.

        Raises:
            LabError: no pod has made progress for `STUCK_SECONDS`.
        """
        for active in list(self._active.values()):
            self._follow(active)
        if self._exclusive and self._exclusive_may_start(self._exclusive[0]):
            self._start(self._exclusive.popleft())
        shared = sum(not one.pod.exclusive for one in self._active.values())
        if self._shared and shared < SHARED_AT_ONCE:
            self._start(self._shared.popleft())
        if time.monotonic() - self._progress_at > STUCK_SECONDS:
            states = {name: self.cluster_state.pods.get(name) for name in self._active}
            raise LabError(f"no pod has started or ended for {STUCK_SECONDS:.0f} s: {states}")

    def _exclusive_may_start(self, pod: PlannedPod) -> bool:
        present = [
            one for one in self._active.values() if one.pod.exclusive and one.ended_at is None
        ]
        if not present:
            return True
        return pod.early and len(present) == 1 and present[0].started_at is not None

    def _start(self, pod: PlannedPod) -> None:
        body = manifest(pod)
        until_answered(lambda: self.lab.cluster.api.create(PODS, body), None)
        self._active[pod.name] = ActivePod(pod)
        self.starts += 1
        self._progress_at = time.monotonic()
        if self.starts % PROGRESS_EVERY == 0:
            self.progress(f"chaos: {self.starts} of {self.plan.pods} pods started")

    def _follow(self, active: ActivePod) -> None:
        seen = self.cluster_state.pods.get(active.pod.name)
        now = time.monotonic()
        if active.ended_at is not None:
            if seen is None and self.cluster_state.polled_at > active.ended_at:
                del self._active[active.pod.name]
                self._progress_at = now
            return
        if seen is None:
            return
        if active.started_at is None and (seen.started or seen.ended):
            active.started_at = now
            self._progress_at = now
        if self._is_due(active, seen, now):
            self._end(active)
        elif active.started_at is not None:
            self._resize(active, now - active.started_at)

    def _resize(self, active: ActivePod, age_seconds: float) -> None:
        """Ask for the next planned amount, if it is time; a pod may end meanwhile."""
        pod = active.pod
        if active.resized == len(pod.resizes) or age_seconds < pod.resizes[active.resized][0]:
            return
        path = f"{PODS}/{pod.name}/resize?fieldManager=chaos&force=true"
        body = resize(pod, pod.resizes[active.resized].cpu)
        try:
            until_answered(lambda: self.lab.cluster.api.request("PATCH", path, body), None)
            self.resizes["Taken"] += 1
        except AnswerError as error:
            self.resizes[f"Refused: {error.status}"] += 1
        active.resized += 1

    def _is_due(self, active: ActivePod, seen: PodState, now: float) -> bool:
        if seen.ended:
            return True
        if active.pod.end is End.BY_ITSELF or active.started_at is None:
            return False
        return now - active.started_at >= active.pod.life_seconds

    def _end(self, active: ActivePod) -> None:
        """Delete a pod, also one that has ended by itself."""
        forced = active.pod.end is End.FORCED
        body: dict[str, Any] | None = {"gracePeriodSeconds": 0} if forced else None
        path = f"{PODS}/{active.pod.name}"
        until_answered(lambda: self.lab.cluster.api.request("DELETE", path, body), None)
        active.ended_at = self._progress_at = time.monotonic()
        self.ends[active.pod.end.value] += 1


class Injector(NamedTuple):
    """Injects faults of some kinds, one after the other."""

    kinds: Collection[Fault]
    inject: Inject


def execute(driver: Driver, injectors: Iterable[Injector], parts: Parts) -> None:
    """Execute the whole plan: pods in this thread, the faults of each injector in its own.

    Raises:
        LabError: a part did not become ready again, or ended without being killed.
    """
    with ExitStack() as stack:
        threads = [stack.enter_context(FaultThread(driver, one)) for one in injectors]
        while not (driver.done and all(thread.done for thread in threads)):
            driver.tick()
            for thread in threads:
                thread.check()
            parts.check()
            time.sleep(TICK_SECONDS)
        for thread in threads:  # one that failed at the end is done, too
            thread.check()


class FaultThread:
    """Injects faults one after the other, each when enough pods have been started."""

    def __init__(self, driver: Driver, injector: Injector) -> None:
        self._driver, self._inject = driver, injector.inject
        self._faults = [one for one in driver.plan.faults if one.fault in injector.kinds]
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="faults")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def done(self) -> bool:
        """Whether every fault was injected."""
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raise the error that ended the thread, if there is one."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for fault in self._faults:
                while self._driver.starts < fault.after:
                    if self._stop.wait(TICK_SECONDS):
                        return
                self._inject(fault)
        except (LabError, OSError) as error:
            self._failure = error
