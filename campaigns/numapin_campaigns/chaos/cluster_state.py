"""The pods of the cluster and the memory of numapin's processes, polled in a thread."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from numapin_campaigns.frame.observe import AWAY, PODS, Observer
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.processes.daemons import Watched
from numapin_lab.processes.usage import resident_mib
from numapin_lab.running_lab import RunningLab


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod as it was last read from the API server."""

    phase: str
    started: bool
    """Whether a container, init containers aside, runs or has run."""

    @property
    def ended(self) -> bool:
        """Whether all of its containers have ended."""
        return self.phase in {"Succeeded", "Failed"}

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Parse a pod."""
        statuses = body["status"].get("containerStatuses", ())
        started = any(one["state"].keys() & {"running", "terminated"} for one in statuses)
        return cls(body["status"].get("phase", ""), started)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a process: monotonic seconds, its pid, resident MiB."""

    at: float
    pid: int
    mib: float


class ClusterState(Observer):
    """Pods and memory, as they were a moment ago; `with` it a thread looks."""

    def __init__(self, lab: RunningLab, daemons: Mapping[str, Watched]) -> None:
        super().__init__("cluster state")
        self._session, self._daemons = lab, daemons
        self._measured_at = 0.0
        self.pods: Mapping[str, PodState] = {}
        self.polled_at = 0.0
        self.memory: dict[str, list[Memory]] = {"enforcer": [], "operator": []}

    def look(self) -> None:
        """Read the pods, and each second the memory."""
        self._poll()
        if time.monotonic() - self._measured_at >= 1.0:
            self._measured_at = time.monotonic()
            self._measure()

    def _poll(self) -> None:
        began = time.monotonic()
        with suppress(AnswerError, *AWAY):
            items = self._session.cluster.api.get(PODS)["items"]
            self.pods = {one["metadata"]["name"]: PodState.parse(one) for one in items}
            self.polled_at = began

    def _measure(self) -> None:
        for name, readings in self.memory.items():
            pid = self._daemons[name].pid()
            if pid is not None:
                with suppress(ProcessLookupError):
                    readings.append(Memory(time.monotonic(), pid, resident_mib(pid)))


def open_files(pid: int) -> tuple[int, int]:
    """How many files and how many inotify watches a process has open."""
    files = watches = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            files += 1
            watches += entry.read_text().count("inotify wd:")
    return files, watches
