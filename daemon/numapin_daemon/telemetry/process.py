"""Reads what every program reports of itself."""

import resource
import time
from pathlib import Path
from typing import Final

from numapin_daemon.telemetry.metric import Values
from numapin_daemon.telemetry.process_table import (
    BUILD_INFO,
    CPU_SECONDS,
    OPEN_FILES,
    RESIDENT_BYTES,
    START_TIME,
)
from numapin_daemon.version import VERSION

_STARTED_AT: Final = time.time()
"""When this module was imported, some tenths of a second after the start."""


def read_process() -> Values:
    """The present values. Source: proc(5), `/proc/pid/statm`; clock_gettime(2)."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return {
        CPU_SECONDS: {(): time.process_time()},
        RESIDENT_BYTES: {(): pages * resource.getpagesize()},
        START_TIME: {(): _STARTED_AT},
        BUILD_INFO: {(VERSION,): 1.0},
        OPEN_FILES: {(): sum(1 for _ in Path("/proc/self/fd").iterdir())},
    }
