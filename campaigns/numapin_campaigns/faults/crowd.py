"""Many pods with many nested cgroups each."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.observe import PODS, until_answered
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.sampling.cgroup_tree import UNREAD, read_name
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import wait_until
from numapin_lab.running_lab import pod

NESTED: Final = 500
"""In each container."""

STAY_SECONDS: Final = 10.0
START_SECONDS: Final = 60.0


CROWD: Final = Fault("Crowd", every=200, needs=frozenset({Needs.THREAD}))
"""Many pods with many nested cgroups each, all at a time."""
FAULTS: Final = (CROWD,)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """Starts a crowd and deletes it."""
    yield Crowd(target).inject


class Crowd:
    """Starts the pods, fills their containers with cgroups, and deletes them some time later."""

    def __init__(self, target: Target) -> None:
        self._target, self._api = target, target.lab.cluster.api
        self._wait = START_SECONDS

    def inject(self, planned: PlannedFault) -> None:
        """Have the crowd for some seconds, beside whatever else starts.

        A pod that does not start is left out: if containerd is killed meanwhile, some never do.
        """
        names = [f"crowd-{number}" for number in range(self._target.crowd)]
        for name in names:
            until_answered(partial(self._api.create, PODS, pod(name)), None)
        began, self._wait = time.monotonic(), START_SECONDS
        for name in names:
            self._fill(name)
        time.sleep(STAY_SECONDS + planned.lasts_seconds)
        now = {"gracePeriodSeconds": 0}
        for name in names:
            until_answered(partial(self._api.request, "DELETE", f"{PODS}/{name}", now), None)
        self._target.crowded.append((began, time.monotonic()))

    def _fill(self, name: str) -> None:
        found = until_answered(partial(self._api.get, f"{PODS}/{name}"), None)
        root = self._target.lab.kubepods / "besteffort" / f"pod{found['metadata']['uid']}"
        try:
            wait_until(lambda: any(self._containers(root)), f"the container of {name}", self._wait)
            self._target.made["CrowdedCgroups"] += fill(next(self._containers(root)))
        except (LabError, OSError, StopIteration):
            self._wait = 0.0  # the others have had the same time
            self._target.made["CrowdLeftOut"] += 1

    def _containers(self, root: Path) -> Iterator[Path]:
        """The pod's one container, once it has its cgroup; a sandbox has no name."""
        for folder in root.iterdir() if root.exists() else ():
            if folder.is_dir() and read_name(self._target.bundles, folder.name):
                yield folder


def fill(container: Path) -> int:
    """Create cgroups in a container; returns how many."""
    (container / UNREAD).mkdir()
    for number in range(NESTED):
        (container / UNREAD / str(number)).mkdir()
    return NESTED + 1
