"""Whether a virtual machine lives: it answers, and each of its CPUs takes timer interrupts.

In three of some ten complete runs of the tests, an emulated machine stood still, or a process in it
did. The kernel's watchdog fires every 4 s on each CPU that is online, an idle one too; a CPU that
has lost its timer never wakes what sleeps on it.
Source: Linux, kernel/watchdog.c, `watchdog_timer_fn` and `get_softlockup_thresh`.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import kill
from numapin_lab.vm.node_machine import NodeMachine
from numapin_lab.vm.qemu_monitor import Monitor

STILL_SECONDS: Final = 45.0
BETWEEN_SECONDS: Final = 15.0
LOOK: Final = "head -n 1 /proc/interrupts; grep LOC: /proc/interrupts"


def timer_interrupts(text: str) -> dict[str, int]:
    """The timer interrupts of each CPU that is online, from what LOOK prints."""
    header, counts = (line.split() for line in text.splitlines()[:2])
    return dict(zip(header, map(int, counts[1 : len(header) + 1]), strict=True))


@dataclass
class Pulse:
    """What was last seen of each CPU: its timer interrupts, and since when they are so many."""

    machine: NodeMachine
    still_seconds: float = STILL_SECONDS
    between_seconds: float = BETWEEN_SECONDS
    seen: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def problem(self) -> str:
        """Why the machine stands still; empty if it does not, or does not run."""
        try:
            if Monitor(self.machine.monitor.socket, self.still_seconds).state != "running":
                return ""
            answer = self.machine.pulse.run(LOOK, self.still_seconds)
        except TimeoutError:
            return f"it has not answered for {self.still_seconds:.0f} s"
        except (OSError, LabError):
            return ""
        return self.late(timer_interrupts(answer.output), time.monotonic())

    def late(self, counts: Mapping[str, int], now: float) -> str:
        """The CPUs without a timer interrupt for too long; empty if there are none."""
        before = self.seen
        self.seen = {
            cpu: before[cpu] if before.get(cpu, (-1, now))[0] == count else (count, now)
            for cpu, count in counts.items()
        }
        still = [cpu for cpu, (_, since) in self.seen.items() if now - since >= self.still_seconds]
        if not still:
            return ""
        return f"{', '.join(still)} had no timer interrupt for {self.still_seconds:.0f} s"

    def watch(self, ended: threading.Event) -> str:
        """Return why it stands still, after killing it; empty if it ends itself, or `ended` is set.

        All that waits for it ends at once then, and its console says why.
        """
        while (pid := self.machine.daemon.pid()) is not None and not ended.wait(
            self.between_seconds
        ):
            if problem := self.problem():
                with self.machine.daemon.log.open("a") as log:
                    log.write(f"\nlab: the virtual machine stood still: {problem}; it was killed\n")
                kill(pid)
                return problem
        return ""
