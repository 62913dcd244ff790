"""Pure: what a chaos run does, decided by a seed: pods, how each ends, and what goes wrong when."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

_T = TypeVar("_T")

QUIET_SHARE: Final = 0.4
"""The last part of a run, in which the enforcer is not killed: its memory is watched there."""


class PodKind(StrEnum):
    """What a pod is made of; see `pods.manifest`."""

    OWNER = "Owner"
    OWNER_AFTER_INIT = "OwnerAfterInit"
    OWNER_WITH_SIDECAR = "OwnerWithSidecar"
    FRACTION = "Fraction"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"
    SEVERAL = "Several"


class End(StrEnum):
    """How a pod goes."""

    BY_ITSELF = "ByItself"
    DELETED = "Deleted"
    FORCED = "Forced"
    """Deleted with grace period 0 while its process ignores SIGTERM."""


class Fault(StrEnum):
    """What is done to the node or the cluster."""

    KILL_ENFORCER = "KillEnforcer"
    KILL_ENFORCER_AT_NEWS = "KillEnforcerAtNews"
    """As soon as it has reported a new owner."""
    KILL_STANDBY = "KillStandby"
    KILL_OPERATOR = "KillOperator"
    RESTART_API_SERVER = "RestartApiServer"
    KILL_CONTAINERD = "KillContainerd"
    KILL_KUBELET = "KillKubelet"
    DARK = "Dark"
    """The API server is away, and the enforcer is killed and comes back meanwhile."""
    OVERWRITE_OWNER = "OverwriteOwner"
    OVERWRITE_SHARED = "OverwriteShared"
    OVERWRITE_QOS = "OverwriteQos"


OWNERS: Final = (PodKind.OWNER, PodKind.OWNER_AFTER_INIT, PodKind.OWNER_WITH_SIDECAR)
OVERWRITES: Final = (Fault.OVERWRITE_OWNER, Fault.OVERWRITE_SHARED, Fault.OVERWRITE_QOS)

_OWNER_KINDS: Final = {PodKind.OWNER: 6, PodKind.OWNER_AFTER_INIT: 2, PodKind.OWNER_WITH_SIDECAR: 2}
_OTHER_KINDS: Final = {
    PodKind.BEST_EFFORT: 4,
    PodKind.BURSTABLE: 2,
    PodKind.FRACTION: 2,
    PodKind.SEVERAL: 2,
}
_OWNER_ENDS: Final = {End.FORCED: 4, End.DELETED: 3, End.BY_ITSELF: 3}
_OTHER_ENDS: Final = {End.DELETED: 5, End.BY_ITSELF: 4, End.FORCED: 1}

_EVERY: Final = {
    Fault.KILL_ENFORCER: 28,
    Fault.KILL_ENFORCER_AT_NEWS: 28,
    Fault.KILL_STANDBY: 50,
    Fault.KILL_OPERATOR: 40,
    Fault.RESTART_API_SERVER: 90,
    Fault.KILL_CONTAINERD: 60,
    Fault.KILL_KUBELET: 65,
    Fault.DARK: 120,
    Fault.OVERWRITE_OWNER: 8,
    Fault.OVERWRITE_SHARED: 8,
    Fault.OVERWRITE_QOS: 14,
}
"""One of each so many pod starts."""

_OF_THE_ENFORCER: Final = (Fault.KILL_ENFORCER, Fault.KILL_ENFORCER_AT_NEWS, Fault.DARK)


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """One pod.

    Attributes:
        name: unique in the run.
        kind: what it is made of.
        end: how it goes.
        life_seconds: from the moment it is seen to run until it ends or is ended.
        early: for an owner: it comes while the one before it is still there.
    """

    name: str
    kind: PodKind
    end: End
    life_seconds: float
    early: bool = False

    @property
    def owns(self) -> bool:
        """Whether a container of it asks for a whole CPU."""
        return self.kind in OWNERS


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One thing that goes wrong.

    Attributes:
        after_starts: so many pods were started before.
        fault: what it is.
        seconds: how long what was killed stays away.
        choice: in [0, 1): which of those there are then is hit.
    """

    after_starts: int
    fault: Fault
    seconds: float
    choice: float


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """A run: owners come one after the other; the others beside them; faults among all."""

    seed: int
    owners: tuple[PlannedPod, ...]
    others: tuple[PlannedPod, ...]
    faults: tuple[PlannedFault, ...]

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return len(self.owners) + len(self.others)


def make_plan(seed: int, pods: int, *, spare_enforcer: bool = False) -> ChaosPlan:
    """Decide a run. Equal input gives equal output.

    Args:
        seed: of everything that is random.
        pods: how many start; 4 in 10 ask for a CPU of their own.
        spare_enforcer: whether the enforcer is never killed.
    """
    source = random.Random(seed)
    owners = pods * 2 // 5
    return ChaosPlan(
        seed,
        tuple(_owner(source, number) for number in range(owners)),
        tuple(_other(source, number) for number in range(pods - owners)),
        tuple(sorted(_faults(source, pods, spare_enforcer), key=lambda one: one.after_starts)),
    )


def _owner(source: random.Random, number: int) -> PlannedPod:
    kind, end = _draw(source, _OWNER_KINDS), _draw(source, _OWNER_ENDS)
    life, early = source.uniform(0.2, 1.5), source.random() < 0.3
    return PlannedPod(f"owner-{number}", kind, end, round(life, 2), early)


def _other(source: random.Random, number: int) -> PlannedPod:
    kind, end = _draw(source, _OTHER_KINDS), _draw(source, _OTHER_ENDS)
    life = source.uniform(0.2, 1.0 if kind is PodKind.FRACTION else 4.0)
    return PlannedPod(f"other-{number}", kind, end, round(life, 2))


def _faults(source: random.Random, pods: int, spare: bool) -> Iterator[PlannedFault]:
    for fault, every in _EVERY.items():
        last = pods * (1 - QUIET_SHARE) if fault in _OF_THE_ENFORCER else pods * 0.95
        count = 0 if spare and fault in _OF_THE_ENFORCER else max(1, pods // every)
        for _ in range(count):
            after = source.randint(2, max(2, int(last)))
            seconds = round(source.uniform(0.0, 1.5), 2)
            yield PlannedFault(after, fault, seconds, source.random())


def _draw(source: random.Random, weights: Mapping[_T, int]) -> _T:
    return source.choices(list(weights), list(weights.values()))[0]
