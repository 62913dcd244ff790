"""What the API server says while a chaos run with moves goes on, read in a thread."""

import time
from contextlib import suppress
from typing import NamedTuple

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignment
from numapin_campaigns.frame.observe import AWAY, PODS, Observer
from numapin_campaigns.workload.notice import leaves_at, leaving_in
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.running_lab import RunningLab


class Notice(NamedTuple):
    """A pod's annotation was seen to say when these CPUs leave; monotonic seconds."""

    pod: str
    cpus: CpuSet
    seen_at: float


class Watch(Observer):
    """The newest NodeAssignment, and each notice of a pod's annotation; `with` it, a thread polls.

    While the API server is away, nothing changes.
    """

    def __init__(self, lab: RunningLab) -> None:
        super().__init__("watch")
        self._lab = lab
        self._texts: dict[str, str] = {}
        self.assignment: NodeAssignment | None = None
        self.notices: list[Notice] = []

    def look(self) -> None:
        """Read both."""
        with suppress(AnswerError, *AWAY):
            self._read_annotations()
            self.assignment = self._lab.assignment()

    def _read_annotations(self) -> None:
        items = self._lab.cluster.api.get(PODS)["items"]
        now = time.monotonic()
        for one in items:
            name = one["metadata"]["name"]
            text = one["metadata"].get("annotations", {}).get(names.CPUS_ANNOTATION, "")
            if text != self._texts.get(name):
                self._texts[name] = text
                if leaves_at(text):
                    self.notices.append(Notice(name, leaving_in(text), now))
