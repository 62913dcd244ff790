"""The pods of the cluster and the memory of numapin's processes, polled in a thread."""

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
from numapin_lab.processes.daemons import Watched
from numapin_lab.processes.usage import resident_mib
from numapin_lab.running_lab import RunningLab

POLL_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 300.0
PODS: Final = "/api/v1/namespaces/default/pods"
ASSIGNMENTS: Final = "/apis/numapin.io/v1alpha1/nodeassignments"
AWAY: Final = (OSError, http.client.HTTPException, ValueError)
"""Errors of a client while the API server ends, is down, or starts."""

_TEMPORARY: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_T = TypeVar("_T")


def until_answered(call: Callable[[], _T], missing: _T) -> _T:
    """Repeat a call until the API server answers; return `missing` for 404.

    While it starts, the API server refuses requests that roles it has not read yet will allow.

    Raises:
        LabError: the request is refused, or was not answered for `PATIENCE_SECONDS`.
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
class PodState:
    """One pod as it was last read from the API server."""

    uid: str
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
        return cls(body["metadata"]["uid"], body["status"].get("phase", ""), started)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a process: monotonic seconds, its pid, resident MiB."""

    at: float
    pid: int
    mib: float


class ClusterState:
    """Pods and memory, as they were a moment ago; `with` it a thread looks."""

    def __init__(self, lab: RunningLab, daemons: Mapping[str, Watched]) -> None:
        self._session, self._daemons = lab, daemons
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster state")
        self.pods: Mapping[str, PodState] = {}
        self.polled_at = 0.0
        self.memory: dict[str, list[Memory]] = {"enforcer": [], "operator": []}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        measured_at = 0.0
        while not self._stop.wait(POLL_SECONDS):
            self._poll()
            if time.monotonic() - measured_at >= 1.0:
                measured_at = time.monotonic()
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
