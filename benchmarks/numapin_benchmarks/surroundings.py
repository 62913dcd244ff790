"""What figures depend on beside the code, and lines for a person who waits for them."""

import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from numapin_enforcer.cgroups.mounts import find_mounts

CGROUPFS = Path("/sys/fs/cgroup")


def progress(text: str) -> None:
    """Print a line to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def machine() -> dict[str, Any]:
    """The properties of this machine."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "cgroups": f"v{find_mounts(CGROUPFS).version}",
        "python": platform.python_version(),
    }
