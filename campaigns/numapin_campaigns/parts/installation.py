"""Numapin's parts on a node that is this machine: processes from source, or pods."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final, Protocol

from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.logs import Log, LogLines
from numapin_campaigns.parts.part import (
    API_SERVER,
    CONTAINERD,
    ENFORCER,
    KUBELET,
    OPERATOR,
    STANDBY,
    LoggingPart,
    Part,
)
from numapin_campaigns.parts.state_folder import StateFolder, own_file_system
from numapin_daemon.probes.health import NO_PASSES
from numapin_enforcer.standby.fencing import STANDING_BY
from numapin_lab.processes.daemons import Watched
from numapin_lab.running_lab import RunningLab

PROBE_SECONDS: Final = 5
STOP_SECONDS: Final = 1.0


class Installation(Protocol):
    """Operator, enforcer and standby of a lab, however they run."""

    need_api_server: bool
    """Whether a part that was killed may need the API server to be started again."""

    @property
    def daemons(self) -> Mapping[str, Watched]:
        """The process of each part by its name. `start` does nothing if the kubelet starts it."""

    def log(self, name: str) -> LogLines:
        """The log of a part, from its present end on."""

    def page(self, name: str, page: str) -> bytes:
        """A page of the enforcer or of an operator, such as `readyz`; empty without an answer."""

    def operator_decides(self, since: float) -> bool:
        """Whether an operator leads that has begun, or gone on, after `since` (seconds of UTC)."""

    def kubelet_answers(self) -> bool:
        """Whether the kubelet's own probe succeeds."""

    def state_folder(self) -> AbstractContextManager[StateFolder]:
        """A file system for the enforcer's saved assignment that can be full or read-only."""


class FromSource:
    """Processes from source, which somebody must start again."""

    need_api_server = False

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

    def page(self, name: str, page: str) -> bytes:
        """From its port on loopback."""
        return probe(self._lab.agent(name).port, page)

    def operator_decides(self, since: float) -> bool:
        """From the operator's probe: it takes part in no election."""
        del since
        return self._lab.agent("operator").ready()

    def kubelet_answers(self) -> bool:
        """From its port on loopback."""
        return probe(self._lab.cluster.kubelet.ports.health, "healthz") == b"ok"

    def state_folder(self) -> AbstractContextManager[StateFolder]:
        """A small one of this machine."""
        return own_file_system(self._lab)


def parts_of(lab: RunningLab, installed: Installation) -> Parts:
    """Every part that can be hit on a node that is this machine."""
    cluster, daemons = lab.cluster, installed.daemons
    standby = daemons[STANDBY]
    return Parts(
        {
            OPERATOR: Part(daemons[OPERATOR], installed.operator_decides),
            ENFORCER: Part(
                daemons[ENFORCER],
                lambda _: enforcer_passed(installed),
                says=lambda: installed.page("enforcer", "readyz").decode(),
            ),
            STANDBY: LoggingPart(standby, log=lambda: installed.log(STANDBY), text=STANDING_BY),
            API_SERVER: Part(
                cluster.plane.apiserver, lambda _: cluster.api.ready(), grace_seconds=STOP_SECONDS
            ),
            CONTAINERD: Part(cluster.runtime.daemon, begin=cluster.runtime.start),
            KUBELET: Part(cluster.kubelet.daemon, lambda _: installed.kubelet_answers()),
        }
    )


def enforcer_passed(installed: Installation) -> bool:
    """Whether the enforcer has made its first pass, ready or not."""
    text = installed.page("enforcer", "readyz")
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
