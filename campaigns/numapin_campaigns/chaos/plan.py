"""What a chaos run does, decided by a seed: pods, how each ends, and injected faults."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from numapin_campaigns.faults.registry import ALL
from numapin_campaigns.frame.plan import Needs, PlannedFault, possible
from numapin_campaigns.parts.part import ENFORCER

_T = TypeVar("_T")

QUIET_SHARE: Final = 0.4
"""The last part of a run, in which the enforcer is neither killed nor stopped.

So its memory can be watched.
"""


RESIZED_EXCLUSIVE: Final = 7
"""One exclusive pod of so many leaves exclusivity by a resize, and asks for it again."""

RESIZED_FRACTION: Final = 3
"""Of the pods with a fraction of a CPU about one of so many asks for a CPU of its own."""

MOST_CROWDED: Final = 40
CROWDED_SHARE: Final = 5
"""The crowd is so many times smaller than the number of pods."""


class PodKind(StrEnum):
    """Which containers a pod has; see `pods.manifest`."""

    EXCLUSIVE = "Exclusive"
    EXCLUSIVE_AFTER_INIT = "ExclusiveAfterInit"
    EXCLUSIVE_WITH_SIDECAR = "ExclusiveWithSidecar"
    FRACTION = "Fraction"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"
    SEVERAL = "Several"


class End(StrEnum):
    """How a pod ends."""

    BY_ITSELF = "ByItself"
    DELETED = "Deleted"
    FORCED = "Forced"
    """Deleted with grace period 0 while its process ignores SIGTERM."""


FAULTS: Final = possible(ALL, (Needs.RUNTIME, Needs.THREAD))
"""One part is hit at a time."""

EXCLUSIVE_KINDS: Final = {
    PodKind.EXCLUSIVE: 6,
    PodKind.EXCLUSIVE_AFTER_INIT: 2,
    PodKind.EXCLUSIVE_WITH_SIDECAR: 2,
}
_SHARED_KINDS: Final = {
    PodKind.BEST_EFFORT: 4,
    PodKind.BURSTABLE: 2,
    PodKind.FRACTION: 2,
    PodKind.SEVERAL: 2,
}
_EXCLUSIVE_ENDS: Final = {End.FORCED: 4, End.DELETED: 3, End.BY_ITSELF: 3}
_SHARED_ENDS: Final = {End.DELETED: 5, End.BY_ITSELF: 4, End.FORCED: 1}


class PlannedResize(NamedTuple):
    """A resize in place of a pod's first container.

    Attributes:
        after_seconds: from when the pod is seen running.
        cpu: the amount that is asked for.
    """

    after_seconds: float
    cpu: str


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """One pod.

    Attributes:
        name: unique in the run.
        kind: which containers it has.
        end: how it ends.
        life_seconds: from when it is seen running until it ends or is deleted.
        early: for an exclusive pod: it starts while the one before it still runs.
        resizes: in order of time.
    """

    name: str
    kind: PodKind
    end: End
    life_seconds: float
    early: bool = False
    resizes: tuple[PlannedResize, ...] = ()

    @property
    def exclusive(self) -> bool:
        """Whether one of its containers requests a whole CPU."""
        return self.kind in EXCLUSIVE_KINDS


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """A run: exclusive pods one after the other, shared pods beside them, faults among all."""

    seed: int
    exclusive_pods: tuple[PlannedPod, ...]
    shared_pods: tuple[PlannedPod, ...]
    faults: tuple[PlannedFault, ...]

    @property
    def pods(self) -> int:
        """How many pods there are, without those of `CROWD`."""
        return len(self.exclusive_pods) + len(self.shared_pods)

    @property
    def crowd(self) -> int:
        """How many pods `CROWD` has: 40 in a run of 200."""
        return min(MOST_CROWDED, self.pods // CROWDED_SHARE)


def make_plan(seed: int, pods: int, *, spare_enforcer: bool = False) -> ChaosPlan:
    """Decide a run. Equal input gives equal output.

    Args:
        seed: of everything that is random.
        pods: how many start; 4 in 10 request a whole CPU.
        spare_enforcer: whether the enforcer is neither killed nor stopped.
    """
    source = random.Random(seed)
    exclusive = pods * 2 // 5
    return ChaosPlan(
        seed,
        tuple(_exclusive_pod(source, number) for number in range(exclusive)),
        tuple(_shared_pod(source, number) for number in range(pods - exclusive)),
        tuple(sorted(_faults(source, pods, spare_enforcer), key=lambda one: one.after)),
    )


def _exclusive_pod(source: random.Random, number: int) -> PlannedPod:
    kind, end = _draw(source, EXCLUSIVE_KINDS), _draw(source, _EXCLUSIVE_ENDS)
    life, early = source.uniform(0.2, 1.5), source.random() < 0.3
    planned = PlannedPod(f"exclusive-{number}", kind, end, round(life, 2), early)
    if number % RESIZED_EXCLUSIVE:
        return planned
    return _resized(source, replace(planned, kind=PodKind.EXCLUSIVE), ("1500m", "1"))


def _shared_pod(source: random.Random, number: int) -> PlannedPod:
    kind, end = _draw(source, _SHARED_KINDS), _draw(source, _SHARED_ENDS)
    life = source.uniform(0.2, 1.0 if kind is PodKind.FRACTION else 4.0)
    planned = PlannedPod(f"shared-{number}", kind, end, round(life, 2))
    if kind is not PodKind.FRACTION or number % RESIZED_FRACTION:
        return planned
    return _resized(source, planned, ("1", "20m"))


def _resized(source: random.Random, pod: PlannedPod, amounts: Sequence[str]) -> PlannedPod:
    """The pod, which lives long enough for resizes to these amounts."""
    at, resizes = source.uniform(0.0, 1.0), list[PlannedResize]()
    for cpu in amounts:
        resizes.append(PlannedResize(round(at, 2), cpu))
        at += source.uniform(1.5, 3.0)
    return replace(pod, life_seconds=round(at, 2), resizes=tuple(resizes))


def _faults(source: random.Random, pods: int, spare: bool) -> Iterator[PlannedFault]:
    for fault in FAULTS:
        hits_the_enforcer = ENFORCER in fault.parts
        last = pods * (1 - QUIET_SHARE) if hits_the_enforcer else pods * 0.95
        for _ in range(0 if spare and hits_the_enforcer else max(1, pods // fault.every)):
            after = source.randint(2, max(2, int(last)))
            seconds = round(source.uniform(0.0, 1.5), 2)
            yield PlannedFault(fault, after, (seconds,), choice=source.random())


def _draw(source: random.Random, weights: Mapping[_T, int]) -> _T:
    return source.choices(list(weights), list(weights.values()))[0]
