"""What faults are injected into, and what they write down."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from numapin_campaigns.frame.plan import Fault, PlannedFault
from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.installation import Installation
from numapin_campaigns.parts.state_folder import StateFolder
from numapin_campaigns.sampling.samples import Overwrite
from numapin_lab.running_lab import RunningLab

Inject = Callable[[PlannedFault], None]
"""Injects a fault; returns when it is over."""


@dataclass
class Target:
    """A node of this machine with its lab.

    Attributes:
        lab: the lab.
        installation: numapin's parts as they run there.
        parts: every part that can be hit.
        state_folder: the folder of the enforcer's saved assignment.
        planned: the faults of the run.
        crowd: how many pods a crowd has.
        hogged: a container of the shared pool, for real-time threads of a tenant. None if the
            enforcer has no real-time priority itself: all that they would show is documented then.
        tenant: a container of the shared pool, for programs of a tenant.
        made: how often what was done.
        overwrites: the cpusets that were overwritten.
        crowded: from when until when there was a crowd, monotonic seconds.
        hitting: held by the thread that hits a part.
    """

    lab: RunningLab
    installation: Installation
    parts: Parts
    state_folder: StateFolder
    planned: Sequence[PlannedFault] = ()
    crowd: int = 0
    tenant: Path = Path()
    hogged: Path | None = None
    made: Counter[str] = field(default_factory=Counter)
    overwrites: list[Overwrite] = field(default_factory=list)
    crowded: list[tuple[float, float]] = field(default_factory=list)
    hitting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bundles(self) -> Path:
        """Where the runtime has the configurations of the containers."""
        return self.lab.cluster.runtime.run / "containerd/io.containerd.runtime.v2.task/k8s.io"

    def count(self, fault: Fault) -> int:
        """How often a fault is planned."""
        return sum(one.fault is fault for one in self.planned)
