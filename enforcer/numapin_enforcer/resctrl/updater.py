"""Shares out caches in the background: hardware may be slow to answer."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_api.text import first_texts
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Looks, Worker
from numapin_enforcer.resctrl.files import Resctrl, ResctrlError
from numapin_enforcer.resctrl.keeper import Keeper, Outcome
from numapin_enforcer.resctrl.saved import SavedRecord
from numapin_enforcer.resctrl.values import Wanted

LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 10.0
"""How often resctrl is read: the kernel does not report what others write there."""

RETRY_SECONDS: Final = 60.0
"""How soon that is tried again which the kernel has refused."""

SHOWN: Final = 3
"""How many problems a message names."""

_EXPECTED: Final = (ResctrlError, OSError)


@dataclass(frozen=True, slots=True)
class Host:
    """Where the files are.

    Attributes:
        files: the kernel's.
        state_dir: a folder that outlives this process.
        boot_id: of the machine; None if unknown.
    """

    files: Resctrl
    state_dir: Path
    boot_id: str | None

    def keeper(self) -> Keeper:
        """What earlier processes have saved, and the kernel's files."""
        return Keeper(self.files, SavedRecord(self.state_dir, self.boot_id))


@dataclass(eq=False, slots=True)
class CacheUpdater:
    """What is wanted of resctrl, and what the last look has found.

    Attributes:
        host: where the files are.
        wake: set when the outcome or the problem has changed.
        clock: the time.
        outcome: of the last look; nothing before the first.
        on_foreign: called with how many changes of others were undone.
    """

    host: Host
    wake: asyncio.Event
    clock: Clock = field(default_factory=SystemClock)
    outcome: Outcome = field(default_factory=Outcome, init=False)
    on_foreign: Callable[[int], object] = field(default=bool, init=False)
    _looks: Looks[Wanted, Keeper] = field(init=False)
    _worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        self._looks = Looks(self._is_needed, self._made_keeper, self._look, self._rest)
        self._worker = Worker(
            "resctrl",
            self._looks.make,
            expected=_EXPECTED,
            failure="caches are not shared out, it will be retried",
            wake=self.wake.set,
            clock=self.clock,
        )

    def want(self, wanted: Wanted) -> None:
        """Share out caches like this from now on; without exclusive CPUs, restore them."""
        if self._looks.want(wanted):
            self._worker.request(skip_backoff=True)

    def pause(self) -> None:
        """Write nothing until something is wanted again."""
        self._looks.pause()

    def counters(self) -> dict[tuple[str, int], int]:
        """What the hardware has counted for exclusive CPUs; nothing unless they have a group."""
        return self.host.files.counters() if self.outcome.cpus else {}

    @property
    def message(self) -> str:
        """What is not as it is wanted, and why; empty if all is."""
        if self._worker.problem is not None:
            return str(self._worker.problem)
        return first_texts(self.outcome.problems, SHOWN, "; ")

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps resctrl from being restored."""
        problem = self._worker.problem
        if problem is not None and not isinstance(problem, _EXPECTED):
            return (internal_error("sharing out caches", problem),)
        if not (why := self.message):
            return ()
        message = f"resctrl is not as it was found: {why}"
        return (Obstacle(Reason.CACHE_NOT_SHARED_OUT, message),)

    async def run(self) -> None:
        """Look at resctrl whenever it is due, until cancelled; a failure is retried."""
        await self._worker.run()

    def _made_keeper(self) -> Keeper:
        return self.host.keeper()

    def _is_needed(self, wanted: Wanted) -> bool:
        return bool(wanted.cpus) or SavedRecord.exists(self.host.state_dir)

    async def _look(self, keeper: Keeper, wanted: Wanted) -> float | None:
        outcome = await asyncio.to_thread(keeper.look, wanted)
        self._take_over(outcome)
        if wanted.cpus or outcome.problems:
            return RETRY_SECONDS if outcome.is_refused else LOOK_SECONDS
        return None

    def _rest(self) -> None:
        self._take_over(Outcome())

    def _take_over(self, outcome: Outcome) -> None:
        if outcome.written:
            extra = {"lines": outcome.written, "cpus": outcome.cpus, "schemata": outcome.schemata}
            LOG.info("shared out caches", extra=extra)
        if outcome.foreign:
            LOG.warning("others changed resctrl", extra={"changes": outcome.foreign})
            self.on_foreign(outcome.foreign)
        before, self.outcome = self.outcome, outcome
        if outcome.foreign or _shown(before) != _shown(outcome):
            self.wake.set()


def _shown(outcome: Outcome) -> tuple[object, ...]:
    """What of an outcome the status shows."""
    return outcome.cpus, outcome.schemata, outcome.problems
