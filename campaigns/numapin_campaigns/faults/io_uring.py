"""Threads of io_uring that do not keep to the set of their container."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from numapin_campaigns.faults import kills
from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.observe import until_answered
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.parts.part import ENFORCER
from numapin_campaigns.tenants.io_threads import IoThreads
from numapin_lab.running_lab import RunningLab

WORKERS: Final = 6
"""Fewer than a ring makes that has a CPU or two. Source: io_uring/io-wq.c, bounded workers."""

WORKER_SECONDS: Final = 4.0
"""Between two workers: longer in all than the enforcer's resync, so some come back."""

NAMED: Final = "CPUsShared"

IO_URING: Final = Fault("IoUring", (ENFORCER,), 65, frozenset({Needs.THREAD}))
"""A tenant makes such threads; the enforcer is killed at its end."""
FAULTS: Final = (IO_URING,)


@dataclass
class IoTenants:
    """Programs that opened their ring while no CPU was exclusive, each for one fault.

    Attributes:
        programs: they are used up.
        named: whether the status names the container that has such threads.
        kill: injects a kill of the enforcer.
        made: how often what was done.
    """

    programs: list[IoThreads]
    named: Callable[[], bool]
    kill: Inject
    made: Counter[str]
    sleep: Callable[[float], object] = field(default=time.sleep)

    def refuse(self) -> None:
        """The kernel refuses io_uring: do nothing from now on."""
        self.programs.clear()
        self.made["IoUringRefused"] += 1

    def inject(self, planned: PlannedFault) -> None:
        """Make workers for half a minute, end the program, kill the enforcer.

        The enforcer would hold what it saw against the container for ten more minutes, and report
        nothing exclusive. As an administrator would, the run ends the tenant and starts it again.
        """
        if not self.programs:
            return
        with self.programs.pop() as program:
            for _ in range(WORKERS):
                try:
                    program.do("worker")
                    self.made["IoWorkers"] += 1
                except OSError:  # the kernel ended it
                    self.made["IoUringEnded"] += 1
                self.sleep(WORKER_SECONDS + planned.lasts_seconds / WORKERS)
                self.made["IoWorkersNamed"] += self.named()
        self.kill(PlannedFault(kills.KILL_ENFORCER, 0))


def _is_named(lab: RunningLab) -> bool:
    assignment = lab.assignment()
    conditions = assignment.status.conditions if assignment and assignment.status else ()
    return any(one.reason == NAMED for one in conditions)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """As many programs as are planned; none where the kernel refuses io_uring."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = [
            stack.enter_context(IoThreads(folder, target.tenant))
            for _ in range(target.count(IO_URING))
        ]
        named = partial(until_answered, partial(_is_named, target.lab), missing=False)
        tenants = IoTenants([*programs], named, partial(kills.inject, target), target.made)
        try:
            for one in programs:
                one.do("ring")
        except OSError:
            tenants.refuse()
        yield tenants.inject
