"""Many pods with many nested cgroups each."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.observe import PATIENCE_SECONDS, PODS, until_answered
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.sampling.cgroup_tree import UNREAD, read_name
from numapin_lab.running_lab import pod

NESTED: Final = 500
"""In each container."""

STAY_SECONDS: Final = 10.0
START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1


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

    def inject(self, planned: PlannedFault) -> None:
        """Have the crowd for some seconds, beside whatever else starts.

        A pod that does not start is left out: if containerd is killed meanwhile, some never do. A
        busy machine has as long as it needs for the first: a crowd of none would show nothing.
        """
        names = [f"crowd-{number}" for number in range(self._target.crowd)]
        for name in names:
            until_answered(partial(self._api.create, PODS, pod(name)), None)
        began = time.monotonic()
        empty = {self._folder(name) for name in names}
        while empty and time.monotonic() - began < PATIENCE_SECONDS:
            empty -= {folder for folder in empty if self._is_filled(folder)}
            if len(empty) < len(names) and time.monotonic() - began > START_SECONDS:
                break
            time.sleep(POLL_SECONDS)
        self._target.made["CrowdLeftOut"] += len(empty)
        time.sleep(STAY_SECONDS + planned.lasts_seconds)
        now = {"gracePeriodSeconds": 0}
        for name in names:
            until_answered(partial(self._api.request, "DELETE", f"{PODS}/{name}", now), None)
        self._target.crowded.append((began, time.monotonic()))

    def _folder(self, name: str) -> Path:
        found = until_answered(partial(self._api.get, f"{PODS}/{name}"), None)
        return self._target.lab.kubepods / "besteffort" / f"pod{found['metadata']['uid']}"

    def _is_filled(self, folder: Path) -> bool:
        """Fill the container of a pod; returns False if it is not there yet."""
        try:
            for container in self._containers(folder):
                self._target.made["CrowdedCgroups"] += fill(container)
                return True
        except OSError:
            pass  # it ended meanwhile
        return False

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
