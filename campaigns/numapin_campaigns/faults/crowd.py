"""Many pods with many nested cgroups each."""

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from numapin_campaigns.chaos.plan import PlannedFault
from numapin_campaigns.observation.cgroup_tree import UNREAD, read_name
from numapin_campaigns.observation.cluster_state import PODS, until_answered
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import wait_until
from numapin_lab.running_lab import RunningLab, pod

NESTED: Final = 500
"""In each container."""

STAY_SECONDS: Final = 10.0
START_SECONDS: Final = 60.0


class Crowd:
    """Starts the pods, fills their containers with cgroups, and deletes them some time later."""

    def __init__(self, lab: RunningLab, bundles: Path, pods: int) -> None:
        self._lab, self._bundles, self._pods = lab, bundles, pods
        self._wait = START_SECONDS
        self.made: Counter[str] = Counter()
        self.times: list[tuple[float, float]] = []
        """From when until when there was a crowd, monotonic seconds."""

    def inject(self, planned: PlannedFault) -> None:
        """Have the crowd for some seconds, beside whatever else starts.

        A pod that does not start is left out: if containerd is killed meanwhile, some never do.
        """
        api, names = self._lab.cluster.api, [f"crowd-{number}" for number in range(self._pods)]
        for name in names:
            until_answered(partial(api.create, PODS, pod(name)), None)
        began, self._wait = time.monotonic(), START_SECONDS
        for name in names:
            self._fill(name)
        time.sleep(STAY_SECONDS + planned.seconds)
        now = {"gracePeriodSeconds": 0}
        for name in names:
            until_answered(partial(api.request, "DELETE", f"{PODS}/{name}", now), None)
        self.times.append((began, time.monotonic()))

    def _fill(self, name: str) -> None:
        found = until_answered(partial(self._lab.cluster.api.get, f"{PODS}/{name}"), None)
        root = self._lab.kubepods / "besteffort" / f"pod{found['metadata']['uid']}"
        try:
            wait_until(lambda: any(self._containers(root)), f"the container of {name}", self._wait)
            self.made["CrowdedCgroups"] += fill(next(self._containers(root)))
        except (LabError, OSError, StopIteration):
            self._wait = 0.0  # the others have had the same time
            self.made["CrowdLeftOut"] += 1

    def _containers(self, root: Path) -> Iterator[Path]:
        """The pod's one container, once it has its cgroup; a sandbox has no name."""
        for folder in root.iterdir() if root.exists() else ():
            if folder.is_dir() and read_name(self._bundles, folder.name):
                yield folder


def fill(container: Path) -> int:
    """Create cgroups in a container; returns how many."""
    (container / UNREAD).mkdir()
    for number in range(NESTED):
        (container / UNREAD / str(number)).mkdir()
    return NESTED + 1
