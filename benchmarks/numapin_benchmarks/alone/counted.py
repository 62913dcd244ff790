"""What the kernel has counted for a service and for the CPUs that it may use.

Source: proc(5); Linux Documentation/scheduler/sched-stats.rst.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Counted:
    """At one moment, since boot; times in seconds."""

    cpu_seconds: float
    cpu_switches: int
    devices: int
    timers: int
    own_seconds: float
    own_switches: int
    delay_seconds: float
    migrations: int

    def since(self, before: "Counted") -> dict[str, float]:
        """What was added after `before`."""
        then = asdict(before)
        return {name: value - then[name] for name, value in asdict(self).items()}


def count(pid: int) -> Counted:
    """Count for the service with this process id."""
    cpus = os.sched_getaffinity(pid)
    run, switches = zip(*_cpus(cpus), strict=True)
    own, delay, slices = map(int, (PROC / f"{pid}/schedstat").read_text().split())
    devices, timers = _interrupts(cpus)
    moved = re.search(r"nr_migrations +: +(\d+)", (PROC / f"{pid}/sched").read_text())
    assert moved is not None
    return Counted(
        sum(run) / 1e9,
        sum(switches),
        devices,
        timers,
        own / 1e9,
        slices,
        delay / 1e9,
        int(moved[1]),
    )


def _cpus(cpus: Iterable[int]) -> list[tuple[int, int]]:
    """Nanoseconds that tasks ran on each CPU, and how often one began to."""
    names = {f"cpu{cpu}" for cpu in cpus}
    rows = (line.split() for line in (PROC / "schedstat").read_text().splitlines())
    return [(int(row[7]), int(row[9])) for row in rows if row[0] in names]


def _interrupts(cpus: Iterable[int]) -> tuple[int, int]:
    """How many of devices came to these CPUs, and of their timers."""
    devices = timers = 0
    for line in (PROC / "interrupts").read_text().splitlines()[1:]:
        name, _, rest = line.strip().partition(":")
        values = rest.split()
        if name.isdigit():
            devices += sum(int(values[cpu]) for cpu in cpus)
        elif name == "LOC":
            timers += sum(int(values[cpu]) for cpu in cpus)
    return devices, timers
