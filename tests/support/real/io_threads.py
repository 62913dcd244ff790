"""Whether this machine has io_uring."""

import os
from pathlib import Path

from support.real.cgroups import CGROUPFS


def why_without() -> str:
    """Why this machine has no io_uring; empty if it has."""
    disabled = Path("/proc/sys/kernel/io_uring_disabled")
    if disabled.exists() and disabled.read_text().strip() != "0":
        return "io_uring is disabled (kernel.io_uring_disabled)"
    return "" if CGROUPFS.exists() and os.geteuid() == 0 else "needs root and cgroups"
