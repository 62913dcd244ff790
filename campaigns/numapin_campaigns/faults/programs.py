"""What programs in a tenant's container do: threads of io_uring, real-time threads."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from numapin_campaigns.chaos.plan import Fault, PlannedFault
from numapin_campaigns.observation.cluster_state import until_answered
from numapin_campaigns.tenants.io_threads import IoThreads
from numapin_lab.running_lab import RunningLab

WORKERS: Final = 6
"""Fewer than a ring makes that has a CPU or two. Source: io_uring/io-wq.c, bounded workers."""

WORKER_SECONDS: Final = 4.0
"""Between two workers: longer in all than the enforcer's resync, so some come back."""

HOG_SECONDS: Final = 2.0
NAMED: Final = "CPUsShared"

Inject = Callable[[PlannedFault], None]


class IoTenants:
    """Programs that opened their ring while no CPU was exclusive, each for one fault."""

    def __init__(
        self,
        programs: Sequence[IoThreads],
        named: Callable[[], bool],
        kill: Inject,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Args: `named` says whether the status names the container that has such threads."""
        self._programs, self._named, self._kill = list(programs), named, kill
        self._sleep = sleep
        self.made: Counter[str] = Counter()

    def refuse(self) -> None:
        """The kernel refuses io_uring: do nothing from now on."""
        self._programs.clear()
        self.made["IoUringRefused"] += 1

    def inject(self, planned: PlannedFault) -> None:
        """Make workers for half a minute, end the program, kill the enforcer.

        The enforcer would hold what it saw against the container for ten more minutes, and report
        nothing exclusive. As an administrator would, the run ends the tenant and starts it again.
        """
        if not self._programs:
            return
        with self._programs.pop() as program:
            for _ in range(WORKERS):
                try:
                    program.do("worker")
                    self.made["IoWorkers"] += 1
                except OSError:  # the kernel ended it
                    self.made["IoUringEnded"] += 1
                self._sleep(WORKER_SECONDS + planned.seconds / WORKERS)
                self.made["IoWorkersNamed"] += self._named()
        self._kill(PlannedFault(0, Fault.KILL_ENFORCER, 0.0, 0.0))


def _is_named(lab: RunningLab) -> bool:
    assignment = lab.assignment()
    conditions = assignment.status.conditions if assignment and assignment.status else ()
    return any(one.reason == NAMED for one in conditions)


@contextmanager
def io_tenants(
    lab: RunningLab, cgroup: Path, folder: Path, count: int, kill: Inject
) -> Iterator[IoTenants]:
    """So many programs in a container; none where the kernel refuses io_uring."""
    with ExitStack() as stack:
        programs = [stack.enter_context(IoThreads(folder, cgroup)) for _ in range(count)]
        named = partial(until_answered, partial(_is_named, lab), missing=False)
        tenants = IoTenants(programs, named, kill)
        try:
            for one in programs:
                one.do("ring")
        except OSError:
            tenants.refuse()
        yield tenants


def run_fifo_hog(cgroup: Path, seconds: float) -> bool:
    """Be busy with real-time priority on the CPUs of a cgroup; whether the kernel allowed it."""
    module = "numapin_campaigns.tenants.fifo_hog"
    command = (sys.executable, "-m", module, str(HOG_SECONDS + seconds), str(cgroup))
    done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0
