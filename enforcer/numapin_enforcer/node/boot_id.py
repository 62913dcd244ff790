"""Which boot of the machine this is."""

from pathlib import Path
from typing import Final

LONGEST: Final = 64


def read_boot_id(procfs: Path) -> str | None:
    """The kernel's random id of this boot; None if it cannot be read.

    Source: proc(5), `/proc/sys/kernel/random/boot_id`, which the kubelet reports as well.
    """
    try:
        text = (procfs / "sys/kernel/random/boot_id").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.strip()[:LONGEST] or None
