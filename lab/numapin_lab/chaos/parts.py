"""Numapin's three parts, as a chaos run sees them: processes from source, or pods."""

import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from numapin_daemon.probes import NO_PASSES
from numapin_lab.chaos.injection.state_folder import StateFolder, own_file_system
from numapin_lab.chaos.observation.logs import Line, Log
from numapin_lab.processes.daemons import Watched
from numapin_lab.running_lab import RunningLab

PROBE_SECONDS: Final = 5


class LogLines(Protocol):
    """What one part logs."""

    def lines(self) -> Iterator[Line]:
        """Every line since this was made."""


class Parts(Protocol):
    """Operator, enforcer and standby of a lab."""

    @property
    def daemons(self) -> Mapping[str, Watched]:
        """The process of each part by its name. `start` returns when it runs."""

    def log(self, name: str) -> LogLines:
        """The log of a part, from its present end on."""

    def enforcer_passed(self) -> bool:
        """Whether the enforcer has made its first pass, ready or not."""

    def operator_decides(self, since: float) -> bool:
        """Whether an operator leads that has begun, or gone on, after `since` (seconds of UTC)."""

    def kubelet_answers(self) -> bool:
        """Whether the kubelet's own probe succeeds."""

    def state_folder(self) -> AbstractContextManager[StateFolder | None]:
        """A file system for the enforcer's saved assignment that can be full, if there is one."""


class SourceParts:
    """Processes from source, which somebody must start again."""

    def __init__(self, lab: RunningLab) -> None:
        self._lab = lab

    @property
    def daemons(self) -> Mapping[str, Watched]:
        """The process of each part."""
        started = {name: self._lab.agent(name).daemon for name in ("enforcer", "operator")}
        return {**started, "standby": self._lab.cluster.standby}

    def log(self, name: str) -> LogLines:
        """Its file."""
        standby = self._lab.cluster.standby.folder
        return Log((standby if name == "standby" else self._lab.agent(name).folder) / "log")

    def enforcer_passed(self) -> bool:
        """From the enforcer's probe."""
        return passed(probe(self._lab.agent("enforcer").port, "readyz"))

    def operator_decides(self, since: float) -> bool:
        """From the operator's probe: it takes part in no election."""
        del since
        return self._lab.agent("operator").ready()

    def kubelet_answers(self) -> bool:
        """From its port on loopback."""
        return probe(self._lab.cluster.kubelet.ports.health, "healthz") == b"ok"

    @contextmanager
    def state_folder(self) -> Iterator[StateFolder | None]:
        """A small one."""
        with own_file_system(self._lab) as folder:
            yield folder


def passed(text: bytes) -> bool:
    """Whether what /readyz of the enforcer says means that it has made a pass."""
    return bool(text) and NO_PASSES.encode() not in text


def probe(port: int, page: str) -> bytes:
    """The body of a probe page, whatever its status; empty without an answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/{page}", timeout=PROBE_SECONDS) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return bytes(error.read())
    except OSError:
        return b""
