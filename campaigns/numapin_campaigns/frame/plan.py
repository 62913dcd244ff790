"""A plan follows from a seed: equal seeds give equal plans. Does no I/O."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Needs(StrEnum):
    """What a campaign must be able to do for a fault to be possible in it."""

    TOGETHER = "several parts may be away at a time"
    RUNTIME = "containerd is one of the parts"
    THREAD = "a fault has code of its own, which runs in a thread"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is done to a node or to a cluster while a campaign goes on.

    Attributes:
        name: for people and reports.
        parts: those that it kills.
        every: one for so many pods, in a campaign that starts pods.
        needs: what a campaign must be able to do.
        stops: the parts are not killed, but stopped (SIGSTOP).
    """

    name: str
    parts: tuple[str, ...] = ()
    every: int = 0
    needs: frozenset[Needs] = frozenset()
    stops: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault.

    Attributes:
        fault: which fault.
        after: how far the campaign must have come: pods started, or the stage of a change.
        seconds: how long each of its parts is away, more than necessary for one that is stopped; or
            how much longer than it must another fault lasts.
        delay_seconds: how long it waits then.
        choice: in [0, 1): selects one of the candidates that exist then.
    """

    fault: Fault
    after: int
    seconds: tuple[float, ...] = (0.0,)
    delay_seconds: float = 0.0
    choice: float = 0.0

    @property
    def lasts_seconds(self) -> float:
        """How much longer than it must a fault lasts that has one time only."""
        return self.seconds[0]


def possible(faults: Iterable[Fault], able: Collection[Needs]) -> tuple[Fault, ...]:
    """The faults that a campaign with these abilities can have."""
    return tuple(one for one in faults if one.needs <= frozenset(able))
