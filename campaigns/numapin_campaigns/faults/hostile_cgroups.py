"""What a tenant can do: odd nested cgroups, storms of events, a busy real-time thread."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Final

from numapin_campaigns.chaos.plan import Fault, PlannedFault
from numapin_campaigns.faults.programs import run_fifo_hog
from numapin_campaigns.observation.cgroup_tree import container_cgroups

DEPTH: Final = 40
"""More than the enforcer follows, and few enough for runc to remove."""

MANY: Final = 60
FOREIGN_UID: Final = 65534
STORM_SECONDS: Final = 2.0
STORM_PAUSE_SECONDS: Final = 0.002
QUIET_FILE: Final = "notify_on_release"
"""A file of every cgroup of version 1; cpusets do not depend on it."""


class Tenant:
    """Acts in the cgroup of a container of any pod.

    Whatever it creates is removed by the runtime with the container.

    Args:
        kubepods: the folder of all pods.
        hogged: a container of the shared pool for real-time threads. None if the enforcer has no
            real-time priority itself: then all that they would show is documented.
    """

    def __init__(self, kubepods: Path, hogged: Path | None = None) -> None:
        self._root, self._hogged = kubepods, hogged
        self.made: Counter[str] = Counter()

    def inject(self, planned: PlannedFault) -> None:
        """Act in one of the containers that exist, if there is one; it may end meanwhile."""
        if planned.fault is Fault.FIFO_HOG:
            self._hog(planned.seconds)
            return
        containers = sorted(container_cgroups(self._root))
        if not containers:
            return
        target = containers[int(planned.choice * len(containers))]
        try:
            if planned.fault is Fault.EVENT_STORM:
                self._storm(containers, STORM_SECONDS + planned.seconds)
            else:
                self._nest(target)
        except OSError:  # the container ended
            return

    def _hog(self, seconds: float) -> None:
        if self._hogged is not None:
            allowed = run_fifo_hog(self._hogged, seconds)
            self.made["FifoHogs" if allowed else "FifoRefused"] += 1

    def _nest(self, container: Path) -> None:
        """Create cgroups of another user, locked, deep, many, and with a name that is no text."""
        (container / "foreign").mkdir()
        for path in (*(container / "foreign").iterdir(), container / "foreign"):
            os.chown(path, FOREIGN_UID, FOREIGN_UID)
            path.chmod(0)
        (container / os.fsdecode(b"\xff\xfe")).mkdir(0)
        deep = container
        for _ in range(DEPTH):
            deep /= "d"
            deep.mkdir()
        for number in range(MANY):
            (container / f"many-{number}").mkdir()
        self.made["Nested"] += DEPTH + MANY + 2

    def _storm(self, containers: list[Path], seconds: float) -> None:
        """Write files that say nothing of cpusets."""
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            file = containers[number % len(containers)] / QUIET_FILE
            if file.exists():
                file.write_bytes(b"0")
                self.made["IrrelevantWrites"] += 1
            time.sleep(STORM_PAUSE_SECONDS)
