"""What every program reports of itself, under the names of Prometheus' own client libraries.

Does no I/O.
"""

from typing import Final

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
