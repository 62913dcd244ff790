"""Keeps interrupts off exclusive CPUs in the background: a disk may be slow, and there are many."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_api.text import first_texts
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Looks, Worker
from numapin_enforcer.interrupts.files import InterruptsError, MaskFiles
from numapin_enforcer.interrupts.keeper import Keeper, Outcome
from numapin_enforcer.interrupts.plan import Limits
from numapin_enforcer.interrupts.saved_masks import SavedMasks

LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 10.0
"""How often all masks are read: the kernel reports neither new interrupts nor writes of others.

A new interrupt begins with the default mask, which is off exclusive CPUs already.
"""

OFTEN: Final = 3
FOREIGN_SECONDS: Final = 600.0
"""After so many looks within this time that found masks set by others, that is reported."""

SHOWN: Final = 3
"""How many interrupts a message names."""

_EXPECTED: Final = (InterruptsError, OSError)


@dataclass(frozen=True, slots=True)
class Host:
    """Where the files are.

    Attributes:
        files: the kernel's.
        state_dir: a folder that outlives this process.
        boot_id: of the machine; None if unknown.
    """

    files: MaskFiles
    state_dir: Path
    boot_id: str | None

    def keeper(self) -> Keeper:
        """What earlier processes have saved, and the kernel's files."""
        return Keeper(self.files, SavedMasks(self.state_dir, self.boot_id))


@dataclass(eq=False, slots=True)
class InterruptUpdater:
    """What is wanted of all masks, and what the last look has found.

    Attributes:
        host: where the files are.
        wake: set when the outcome or the problem has changed.
        clock: the time.
        outcome: of the last look; nothing before the first.
        on_foreign: called with how many masks others had set onto exclusive CPUs.
    """

    host: Host
    wake: asyncio.Event
    clock: Clock = field(default_factory=SystemClock)
    outcome: Outcome = field(default_factory=Outcome, init=False)
    on_foreign: Callable[[int], object] = field(default=bool, init=False)
    _not_restored: tuple[str, ...] = field(default=(), init=False)
    _foreign_at: deque[float] = field(default_factory=lambda: deque(maxlen=OFTEN), init=False)
    """When looks found masks that others had set."""
    _looks: Looks[Limits, Keeper] = field(init=False)
    _worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        self._looks = Looks(self._is_needed, self._made_keeper, self._look)
        self._worker = Worker(
            "interrupts",
            self._looks.make,
            expected=_EXPECTED,
            failure="interrupts are not kept off exclusive CPUs, it will be retried",
            wake=self.wake.set,
            clock=self.clock,
        )

    def want(self, limits: Limits) -> None:
        """Keep all masks within limits from now on; without exclusive CPUs, restore them."""
        if self._looks.want(limits):
            self._worker.request(skip_backoff=True)

    def pause(self) -> None:
        """Write nothing until something is wanted again."""
        self._looks.pause()

    @property
    def note(self) -> str:
        """Whether another program keeps setting masks; empty if none does."""
        recent = self.clock.monotonic() - FOREIGN_SECONDS
        if len(self._foreign_at) < OFTEN or self._foreign_at[0] < recent:
            return ""
        return (
            "another program sets interrupts onto exclusive CPUs, they are moved back after "
            f"{LOOK_SECONDS:.0f} s at most: stop irqbalance, or have it leave all but the reserved "
            "CPUs alone (IRQBALANCE_BANNED_CPULIST)"
        )

    @property
    def message(self) -> str:
        """What may still interrupt exclusive CPUs, or why it is not known; empty if nothing may."""
        if self._worker.problem is not None:
            return str(self._worker.problem)
        return first_texts([*map(str, self.outcome.staying)], SHOWN, "; ")

    @property
    def lacking(self) -> str:
        """Why others' interrupts may go on to come to exclusive CPUs; empty if they do not."""
        if self._worker.problem is not None:
            return self.message
        left = (one for one in self.outcome.staying if one.is_refused and not one.serves_them)
        return first_texts([*map(str, left)], SHOWN, "; ")

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps masks from being restored."""
        problem = self._worker.problem
        if problem is not None and not isinstance(problem, _EXPECTED):
            return (internal_error("moving interrupts", problem),)
        why = str(problem) if problem is not None else first_texts(self._not_restored, SHOWN, "; ")
        if not why:
            return ()
        message = f"interrupts do not have the CPUs that they had: {why}"
        return (Obstacle(Reason.INTERRUPTS_NOT_MOVED, message),)

    async def run(self) -> None:
        """Look at all masks whenever it is due, until cancelled; a failure is retried."""
        await self._worker.run()

    def _made_keeper(self) -> Keeper:
        return self.host.keeper()

    def _is_needed(self, limits: Limits) -> bool:
        return bool(limits.exclusive) or SavedMasks.exists(self.host.state_dir)

    async def _look(self, keeper: Keeper, limits: Limits) -> float | None:
        outcome = await asyncio.to_thread(keeper.look, limits, self.clock.monotonic())
        self._not_restored = keeper.not_restored if not limits.exclusive else ()
        self._take_over(outcome)
        return LOOK_SECONDS if limits.exclusive or keeper.not_restored else None

    def _take_over(self, outcome: Outcome) -> None:
        if outcome.written:
            extra = {"masks": outcome.written, "kept_off": outcome.kept_off}
            LOG.info("moved interrupts", extra=extra)
        if outcome.foreign:
            named = first_texts([*map(str, outcome.foreign)], SHOWN)
            LOG.warning("others set interrupts onto exclusive CPUs", extra={"masks": named})
            self._foreign_at.append(self.clock.monotonic())
            self.on_foreign(len(outcome.foreign))
        is_news = (outcome.kept_off, outcome.staying) != (
            self.outcome.kept_off,
            self.outcome.staying,
        )
        self.outcome = outcome
        if is_news or outcome.foreign or self._not_restored:
            self.wake.set()
