"""Edge: what the run knows of the cluster and of numapin's processes, looked up all the time."""

import http.client
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from numapin_lab.controlplane.api import AnswerError
from numapin_lab.errors import LabError
from numapin_lab.processes.usage import resident_mib
from numapin_lab.running_lab import RunningLab

LOOK_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 300.0
PODS: Final = "/api/v1/namespaces/default/pods"
ASSIGNMENTS: Final = "/apis/numapin.io/v1alpha1/nodeassignments"
AWAY: Final = (OSError, http.client.HTTPException, ValueError)
"""What a client meets while an API server dies, is dead, or comes up."""

_TEMPORARY: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_T = TypeVar("_T")


def persist(call: Callable[[], _T], missing: _T) -> _T:
    """Ask until the API server answers; `missing` where it says that there is no such thing.

    While it comes up it refuses what its roles, not read yet, will allow.

    Raises:
        LabError: it refuses, or has not answered for `PATIENCE_SECONDS`.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except AnswerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return missing
            passing = error.status in _TEMPORARY or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            if not passing or time.monotonic() > deadline:
                raise
        except AWAY as error:
            if time.monotonic() > deadline:
                raise LabError(f"the API server does not answer: {error}") from error
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class PodNow:
    """One pod as the API server had it last."""

    uid: str
    phase: str
    started: bool
    """Whether an ordinary container of it runs or has run."""

    @property
    def ended(self) -> bool:
        """Whether all of its containers have."""
        return self.phase in {"Succeeded", "Failed"}

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Read a pod."""
        statuses = body["status"].get("containerStatuses", ())
        started = any(one["state"].keys() & {"running", "terminated"} for one in statuses)
        return cls(body["metadata"]["uid"], body["status"].get("phase", ""), started)


@dataclass(frozen=True, slots=True)
class Memory:
    """How much memory a process had: monotonic seconds, its pid, resident MiB."""

    at: float
    pid: int
    mib: float


class ClusterState:
    """Pods and memory, as they were a moment ago; `with` it a thread looks."""

    def __init__(self, lab: RunningLab) -> None:
        self._session = lab
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view")
        self.pods: Mapping[str, PodNow] = {}
        self.looked_at = 0.0
        self.memory: dict[str, list[Memory]] = {"enforcer": [], "operator": []}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        measured_at = 0.0
        while not self._stop.wait(LOOK_SECONDS):
            self._look()
            if time.monotonic() - measured_at >= 1.0:
                measured_at = time.monotonic()
                self._measure()

    def _look(self) -> None:
        began = time.monotonic()
        with suppress(AnswerError, *AWAY):
            items = self._session.cluster.api.get(PODS)["items"]
            self.pods = {one["metadata"]["name"]: PodNow.parse(one) for one in items}
            self.looked_at = began

    def _measure(self) -> None:
        for name, readings in self.memory.items():
            pid = self._session.agent(name).daemon.pid()
            if pid is not None:
                with suppress(ProcessLookupError):
                    readings.append(Memory(time.monotonic(), pid, resident_mib(pid)))


def open_files(pid: int) -> tuple[int, int]:
    """How many files a process has open, and how many inotify watches."""
    files = watches = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            files += 1
            watches += entry.read_text().count("inotify wd:")
    return files, watches
