"""What every program reports of itself, under the names of Prometheus' own client libraries."""

import resource
import time
from pathlib import Path
from typing import Final

from numapin_daemon.telemetry.meter import Values
from numapin_daemon.telemetry.metric import Kind, Metric

CPU_SECONDS: Final = Metric(
    "process_cpu_seconds_total",
    Kind.COUNTER,
    "CPU time of this process, in user and kernel mode.",
    unit="s",
)
RESIDENT_BYTES: Final = Metric(
    "process_resident_memory_bytes", Kind.GAUGE, "Memory of this process in RAM.", unit="By"
)
START_TIME: Final = Metric(
    "process_start_time_seconds",
    Kind.GAUGE,
    "When this process started, in seconds since 1970.",
    unit="s",
)
OPEN_FILES: Final = Metric("process_open_fds", Kind.GAUGE, "Open files of this process.")

PROCESS_METRICS: Final = (CPU_SECONDS, RESIDENT_BYTES, START_TIME, OPEN_FILES)

_STARTED_AT: Final = time.time()
"""When this module was imported, some tenths of a second after the start."""


def read_process() -> Values:
    """The present values. Source: proc(5), `/proc/pid/statm`; clock_gettime(2)."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return {
        CPU_SECONDS: {(): time.process_time()},
        RESIDENT_BYTES: {(): pages * resource.getpagesize()},
        START_TIME: {(): _STARTED_AT},
        OPEN_FILES: {(): sum(1 for _ in Path("/proc/self/fd").iterdir())},
    }
