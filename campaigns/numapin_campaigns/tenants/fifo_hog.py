"""A thread with SCHED_FIFO that is busy, as a program: its arguments are SECONDS CGROUP.

It moves itself into the cgroup, a folder. It rests for a fifth of the time, so that the machine
goes on where the kernel does not see to that.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

PRIORITY: Final = 50
"""As a program with this right may choose; below that of the agents."""

PERIOD_SECONDS: Final = 0.1
BUSY_SHARE: Final = 0.8


def hog(seconds: float) -> None:
    """Be busy for so long."""
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        while time.monotonic() < began + PERIOD_SECONDS * BUSY_SHARE:
            pass
        time.sleep(PERIOD_SECONDS * (1 - BUSY_SHARE))


def main() -> None:
    """Enter the cgroup, ask for the priority, and be busy.

    Raises:
        PermissionError: the kernel refuses the priority.
    """
    seconds, cgroup = float(sys.argv[1]), Path(sys.argv[2])
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    signal.setitimer(signal.ITIMER_REAL, 2 * seconds)  # whatever happens, it ends then
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    hog(seconds)


if __name__ == "__main__":
    main()
