"""A busy loop that knows when it did not run; a program of its own.

Each line of its standard input, a number of seconds, makes it spin for so long. It then prints a
line of JSON: every gap between two readings of the monotonic clock that was longer than
`GAP_SECONDS`, as `[when it began, seconds]`. It spins with real-time priority, above observers and
enforcers: no other process takes its CPU, as on a CPU that is its own. Exception: where processes
with such priority starve others for a second, the kernel gives these 50 ms.
"""

import gc
import json
import os
import sys
import time

GAP_SECONDS = 20e-6
"""A reading takes about 0.1 us."""


def spin(seconds: float) -> list[tuple[float, float]]:
    """The gaps of one spin."""
    read, found = time.monotonic, list[tuple[float, float]]()
    last = read()
    end = last + seconds
    while last < end:
        now = read()
        if now - last > GAP_SECONDS:
            found.append((last, now - last))
        last = now
    return found


def main() -> None:
    """Spin when asked, until the standard input ends."""
    priority = os.sched_get_priority_min(os.SCHED_FIFO) + 1
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    gc.disable()
    for line in sys.stdin:
        print(json.dumps(spin(float(line))), flush=True)


if __name__ == "__main__":
    main()
