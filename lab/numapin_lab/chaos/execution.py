"""Edge: carry a plan out: start pods, end them, and let faults happen among them."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Self

from numapin_lab.chaos.injection.cpuset_overwrites import Overwriter
from numapin_lab.chaos.injection.kills import Killer
from numapin_lab.chaos.observation.cluster_state import PODS, ClusterState, PodNow, persist
from numapin_lab.chaos.plan import OVERWRITES, ChaosPlan, End, PlannedFault, PlannedPod
from numapin_lab.chaos.pods import manifest
from numapin_lab.components.build import Say
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab

TICK_SECONDS: Final = 0.02
OTHERS_AT_ONCE: Final = 5
STUCK_SECONDS: Final = 300.0
TOLD_EVERY: Final = 20


@dataclass(slots=True)
class Living:
    """A pod on its way: created, seen to run, told to end, gone."""

    pod: PlannedPod
    uid: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    """When it was deleted, or seen to have ended by itself."""


@dataclass
class Driver:
    """Starts and ends pods as planned; one `tick` after the other does what is due.

    `starts` counts the pods created so far, which is what the faults wait for; `ran` those seen to
    run by the API server, `ends` the ways in which they went.
    """

    lab: RunningLab
    view: ClusterState
    plan: ChaosPlan
    tell: Say
    starts: int = 0
    ran: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    _living: dict[str, Living] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owners, self._others = deque(self.plan.owners), deque(self.plan.others)
        self._moved_at = time.monotonic()

    @property
    def done(self) -> bool:
        """Whether every pod came and went."""
        return not (self._owners or self._others or self._living)

    def tick(self) -> None:
        """Do what is due.

        Raises:
            LabError: nothing has moved for `STUCK_SECONDS`.
        """
        for living in list(self._living.values()):
            self._follow(living)
        if self._owners and self._owner_may_come(self._owners[0]):
            self._start(self._owners.popleft())
        others = sum(not one.pod.owns for one in self._living.values())
        if self._others and others < OTHERS_AT_ONCE:
            self._start(self._others.popleft())
        if time.monotonic() - self._moved_at > STUCK_SECONDS:
            states = {name: self.view.pods.get(name) for name in self._living}
            raise LabError(f"no pod has come or gone for {STUCK_SECONDS:.0f} s: {states}")

    def _owner_may_come(self, pod: PlannedPod) -> bool:
        staying = [one for one in self._living.values() if one.pod.owns and one.ended_at is None]
        if not staying:
            return True
        return pod.early and len(staying) == 1 and staying[0].started_at is not None

    def _start(self, pod: PlannedPod) -> None:
        body = manifest(pod)
        created = persist(lambda: self.lab.cluster.api.create(PODS, body), None)
        if created is None:  # it was created, but the answer was lost
            created = persist(lambda: self.lab.cluster.api.get(f"{PODS}/{pod.name}"), None)
        uid = created["metadata"]["uid"] if created else ""
        self._living[pod.name] = Living(pod, uid, time.monotonic())
        self.starts += 1
        self._moved_at = time.monotonic()
        if self.starts % TOLD_EVERY == 0:
            self.tell(f"chaos: {self.starts} of {self.plan.pods} pods started")

    def _follow(self, living: Living) -> None:
        seen = self.view.pods.get(living.pod.name)
        now = time.monotonic()
        if living.ended_at is not None:
            if seen is None and self.view.looked_at > living.ended_at:
                del self._living[living.pod.name]
                self._moved_at = now
            return
        if seen is None:
            return
        if living.started_at is None and (seen.started or seen.ended):
            living.started_at = now
            self.ran += 1
            self._moved_at = now
        if self._is_due(living, seen, now):
            self._end(living)

    def _is_due(self, living: Living, seen: PodNow, now: float) -> bool:
        if seen.ended:
            return True
        if living.pod.end is End.BY_ITSELF or living.started_at is None:
            return False
        return now - living.started_at >= living.pod.life_seconds

    def _end(self, living: Living) -> None:
        """Delete it; one that has ended by itself is only cleared away."""
        forced = living.pod.end is End.FORCED
        body: dict[str, Any] | None = {"gracePeriodSeconds": 0} if forced else None
        path = f"{PODS}/{living.pod.name}"
        persist(lambda: self.lab.cluster.api.request("DELETE", path, body), None)
        living.ended_at = self._moved_at = time.monotonic()
        self.ends[living.pod.end.value] += 1


def carry_out(driver: Driver, killer: Killer, overwriter: Overwriter) -> None:
    """The whole plan: pods in this thread, kills in one more, overwriting in a third.

    Raises:
        LabError: something did not come back, or a part ended that nobody killed.
    """
    faults = driver.plan.faults
    kills = [one for one in faults if one.fault not in OVERWRITES]
    by_hand = [one for one in faults if one.fault in OVERWRITES]
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(Lane(driver, kills, killer.commit)),
            stack.enter_context(Lane(driver, by_hand, overwriter.commit)),
        ]
        while not (driver.done and all(lane.done for lane in lanes)):
            driver.tick()
            for lane in lanes:
                lane.check()
            for ended in killer.downtimes.ended_by_themselves():
                raise ended.failure(f"{ended.name} ended though nobody killed it")
            time.sleep(TICK_SECONDS)


class Lane:
    """Faults of one sort, one after the other, each when enough pods were started."""

    def __init__(
        self, driver: Driver, faults: Sequence[PlannedFault], commit: Callable[[PlannedFault], None]
    ) -> None:
        self._driver, self._faults, self._commit = driver, faults, commit
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
        """Whether every fault was committed."""
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raise what went wrong in the thread."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for fault in self._faults:
                while self._driver.starts < fault.after_starts:
                    if self._stop.wait(TICK_SECONDS):
                        return
                self._commit(fault)
        except (LabError, OSError) as error:
            self._failure = error
