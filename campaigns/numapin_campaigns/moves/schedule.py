"""Pure: which part is killed, stopped or started when, while a change is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from numapin_campaigns.faults.kills import NOTICED_SECONDS
from numapin_campaigns.frame.plan import Fault, PlannedFault
from numapin_campaigns.moves.plan import Stage
from numapin_campaigns.parts.part import ENFORCER, STANDBY

STOPPED_SECONDS: Final = NOTICED_SECONDS + 4.0
"""A standby in an emulated machine has noticed by then that the enforcer hangs."""


class Do(StrEnum):
    """What is done to a part."""

    KILL = "Kill"
    STOP = "Stop"
    START = "Start"
    """Or let go on."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is done to one part."""

    do: Do
    part: str


@dataclass
class Schedule:
    """The faults of one round. `made`: those that were injected, each at its stage."""

    planned: Sequence[PlannedFault]
    made: list[tuple[Fault, Stage]] = field(default_factory=list)
    _reached: dict[Stage, float] = field(default_factory=dict)
    _away: dict[str, float] = field(default_factory=dict)
    """For how long each part that was hit stays away."""
    _back: dict[str, float] = field(default_factory=dict)
    """When it is started again."""

    def __post_init__(self) -> None:
        self._left = list(self.planned)

    @property
    def done(self) -> bool:
        """Whether every fault is over."""
        return not (self._left or self._away)

    def take_due(self, now: float, stage: Stage, can_notice: Callable[[], bool]) -> list[Action]:
        """What is due and was not taken yet.

        A fault waits until each of its victims is back. The enforcer is only stopped while a
        standby can notice it.

        Args:
            now: seconds.
            stage: how far the change has come.
            can_notice: whether the standby is ready, and the enforcer too.
        """
        for one in Stage:
            if one <= stage:
                self._reached.setdefault(one, now)
        found = [self._returned(part) for part, at in list(self._back.items()) if at <= now]
        for fault in list(self._left):
            if self._is_due(fault, now) and self._can_be(fault, can_notice):
                self._left.remove(fault)
                self.made.append((fault.fault, stage))
                found += self._injected(fault)
        return found

    def note_hit(self, part: str, now: float) -> None:
        """From now on it is away, which it is for the planned time; hitting it takes some time."""
        self._back[part] = now + self._away[part]

    def _is_due(self, fault: PlannedFault, now: float) -> bool:
        reached = self._reached.get(Stage(fault.after))
        return reached is not None and reached + fault.delay_seconds <= now

    def _can_be(self, fault: PlannedFault, can_notice: Callable[[], bool]) -> bool:
        if any(part in self._away for part in fault.fault.parts):
            return False
        if not fault.fault.stops:
            return not (STANDBY in fault.fault.parts and self._is_stopped)
        return STANDBY not in self._away and can_notice()

    @property
    def _is_stopped(self) -> bool:
        """Whether the enforcer is stopped now, and not killed."""
        stops = [one for one, _ in self.made if ENFORCER in one.parts]
        return ENFORCER in self._away and stops[-1].stops

    def _injected(self, fault: PlannedFault) -> list[Action]:
        what = fault.fault
        least = STOPPED_SECONDS if what.stops else 0.0
        for part, seconds in zip(what.parts, fault.seconds, strict=True):
            self._away[part] = least + seconds
        return [Action(Do.STOP if what.stops else Do.KILL, part) for part in what.parts]

    def _returned(self, part: str) -> Action:
        del self._back[part], self._away[part]
        return Action(Do.START, part)
