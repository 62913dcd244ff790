"""What every daemon reports of itself. Does no I/O.

Metrics of the process have the names of Prometheus' own client libraries.
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

BUILD_INFO: Final = Metric(
    "numapin_build_info", Kind.GAUGE, "1, with the version of this program.", ("version",)
)

OTLP_REFUSED: Final = Metric(
    "numapin_otlp_refused",
    Kind.GAUGE,
    "1 if nothing is sent by OTLP because a variable OTEL_* asks for something that is not there, "
    "else 0.",
)

PROCESS_METRICS: Final = (
    CPU_SECONDS,
    RESIDENT_BYTES,
    START_TIME,
    OPEN_FILES,
    BUILD_INFO,
    OTLP_REFUSED,
)

WATCH_AGE: Final = Metric(
    "numapin_watch_age_seconds",
    Kind.GAUGE,
    "Time since the API server was last heard on a watch; it sends something each minute.",
    ("watch",),
    unit="s",
)
