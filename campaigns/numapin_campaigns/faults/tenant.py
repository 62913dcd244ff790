"""What a tenant can do: odd nested cgroups, storms of events, a busy real-time thread."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.sampling.cgroup_tree import container_cgroups

DEPTH: Final = 40
"""More than the enforcer follows, and few enough for runc to remove."""

MANY: Final = 60
FOREIGN_UID: Final = 65534
STORM_SECONDS: Final = 2.0
STORM_PAUSE_SECONDS: Final = 0.002
HOG_SECONDS: Final = 2.0
QUIET_FILE: Final = "notify_on_release"
"""A file of every cgroup of version 1; cpusets do not depend on it."""


_IN_A_THREAD: Final = frozenset({Needs.THREAD})
HOSTILE_CGROUPS: Final = Fault("HostileCgroups", every=12, needs=_IN_A_THREAD)
"""Nested cgroups that a tenant creates: foreign, locked, deep, many, with odd names."""
EVENT_STORM: Final = Fault("EventStorm", every=40, needs=_IN_A_THREAD)
"""Some 500 writes a second to files of cgroups that say nothing of cpusets."""
FIFO_HOG: Final = Fault("FifoHog", every=28, needs=_IN_A_THREAD)
"""A tenant's thread with SCHED_FIFO is busy for seconds on the CPUs of the shared pool."""
FAULTS: Final = (HOSTILE_CGROUPS, EVENT_STORM, FIFO_HOG)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """Acts in the containers that exist."""
    yield Tenant(target.lab.kubepods, target.made, target.hogged).inject


@dataclass(frozen=True)
class Tenant:
    """Acts in the cgroup of a container of any pod.

    Whatever it creates is removed by the runtime with the container.

    Attributes:
        kubepods: the folder of all pods.
        made: how often what was done.
        hogged: a container of the shared pool for real-time threads; None for none.
    """

    kubepods: Path
    made: Counter[str]
    hogged: Path | None = None

    def inject(self, planned: PlannedFault) -> None:
        """Act in one of the containers that exist, if there is one; it may end meanwhile."""
        if planned.fault is FIFO_HOG:
            self._hog(HOG_SECONDS + planned.lasts_seconds)
            return
        containers = sorted(container_cgroups(self.kubepods))
        if not containers:
            return
        target = containers[int(planned.choice * len(containers))]
        try:
            if planned.fault is EVENT_STORM:
                self._storm(containers, STORM_SECONDS + planned.lasts_seconds)
            else:
                self._nest(target)
        except OSError:  # the container ended
            return

    def _hog(self, seconds: float) -> None:
        """Be busy with real-time priority on the CPUs of a cgroup, if the kernel allows it."""
        if self.hogged is not None:
            module = ("-m", "numapin_campaigns.tenants.fifo_hog")
            command = (sys.executable, *module, str(seconds), str(self.hogged))
            done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
            self.made["FifoRefused" if done.returncode else "FifoHogs"] += 1

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
