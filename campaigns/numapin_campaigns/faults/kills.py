"""Kill or stop parts of the lab, and start them again."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from numapin_campaigns.chaos.plan import Fault, PlannedFault
from numapin_campaigns.faults.downtimes import Downtimes
from numapin_campaigns.observation.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.observation.cluster_state import ASSIGNMENTS, until_answered
from numapin_campaigns.parts.installation import LogLines, Parts, enforcer_passed
from numapin_enforcer.node.heartbeat import HUNG_SECONDS
from numapin_enforcer.standby.fencing import RESYNC_SECONDS, STANDING_BY
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import Watched, kill, stop, wait_until
from numapin_lab.running_lab import RunningLab

READY_SECONDS: Final = 300.0
WITHOUT_API_SECONDS: Final = 30.0
"""How long the API server stays away for the kubelet to start the enforcer again without it."""
STOP_SECONDS: Final = 1.0
REPORT_SECONDS: Final = 5.0
REPORT_POLL_SECONDS: Final = 0.01
NOTICED_SECONDS: Final = HUNG_SECONDS + 2 * RESYNC_SECONDS
"""A standby with a CPU to run on has noticed by then that the enforcer hangs."""


class Killer:
    """Kills a part, waits, starts it again, and records its downtime."""

    def __init__(self, lab: RunningLab, parts: Parts) -> None:
        self._session, self._parts, self._lock = lab, parts, threading.Lock()
        cluster = lab.cluster
        self._actions: dict[Fault, Callable[[float], None]] = {
            Fault.KILL_ENFORCER: self._enforcer,
            Fault.KILL_ENFORCER_AT_REPORT: self._enforcer_at_report,
            Fault.KILL_STANDBY: self._standby,
            Fault.KILL_OPERATOR: self._operator,
            Fault.RESTART_API_SERVER: self._api_server,
            Fault.KILL_CONTAINERD: self._containerd,
            Fault.KILL_KUBELET: self._kubelet,
            Fault.API_SERVER_OUTAGE: self._api_server_outage,
            Fault.STOP_ENFORCER: self._stop_enforcer,
        }
        self.downtimes = Downtimes(
            {
                **parts.daemons,
                "kube-apiserver": cluster.plane.apiserver,
                "containerd": cluster.runtime.daemon,
                "kubelet": cluster.kubelet.daemon,
            }
        )

    def inject(self, planned: PlannedFault) -> None:
        """Inject a fault, one at a time; returns when the part is ready again."""
        with self._lock:
            self._actions[planned.fault](planned.seconds)

    @contextmanager
    def _killed(self, part: str) -> Iterator[Watched]:
        """Kill the part; the caller makes it ready again before the end."""
        with self.downtimes.down(part) as daemon:
            if (pid := daemon.pid()) is not None:
                if part == "kube-apiserver":
                    stop(pid, STOP_SECONDS)
                else:
                    kill(pid)
            yield daemon

    def _enforcer_at_report(self, seconds: float) -> None:
        """Kill the enforcer as soon as it has reported a new exclusive container."""
        before = set(self._reported())
        deadline = time.monotonic() + REPORT_SECONDS
        while set(self._reported()) <= before and time.monotonic() < deadline:
            time.sleep(REPORT_POLL_SECONDS)
        self._enforcer(seconds)

    def _reported(self) -> tuple[tuple[ContainerKey, int], ...]:
        path = f"{ASSIGNMENTS}/{self._session.node}"
        body = until_answered(lambda: self._session.cluster.api.get(path), None)
        return AssignmentVersion.parse(body).reported_exclusive if body else ()

    def _enforcer(self, seconds: float) -> None:
        with self._killed("enforcer") as daemon:
            time.sleep(seconds)
            self._enforcer_again(daemon)

    def _enforcer_again(self, daemon: Watched, seconds: float = READY_SECONDS) -> None:
        self._again(daemon, partial(enforcer_passed, self._parts), "its first pass", seconds)

    def _again(
        self, daemon: Watched, ready: Callable[[], bool], what: str, seconds: float = READY_SECONDS
    ) -> None:
        """Start it if it does not run, and wait until it is ready; the kubelet starts pods."""
        if daemon.pid() is None:
            daemon.start()
        wait_until(lambda: daemon.pid() is not None, f"a new {daemon.name}", seconds)
        wait_until(ready, f"the {daemon.name}: {what}", seconds, daemon)

    def _stop_enforcer(self, seconds: float) -> None:
        with self.downtimes.stopped("enforcer") as daemon:
            pid = daemon.pid()
            if pid is None:
                raise daemon.failure("the enforcer does not run")
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(NOTICED_SECONDS + seconds)
            finally:
                os.kill(pid, signal.SIGCONT)
            passed = partial(enforcer_passed, self._parts)
            wait_until(passed, "the stopped enforcer", READY_SECONDS, daemon)

    def _standby(self, seconds: float) -> None:
        log = self._parts.log("standby")
        with self._killed("standby") as daemon:
            time.sleep(seconds)
            self._again(daemon, partial(_logged, log, STANDING_BY), "it stands by")

    def _operator(self, seconds: float) -> None:
        with self._killed("operator") as daemon:
            since = time.time()
            time.sleep(seconds)
            self._again(daemon, partial(self._parts.operator_decides, since), "it decides")

    def _api_server(self, seconds: float) -> None:
        with self._killed("kube-apiserver") as daemon:
            time.sleep(seconds)
            self._again(daemon, self._session.cluster.api.ready, "it is ready")

    def _containerd(self, seconds: float) -> None:
        with self._killed("containerd"):
            time.sleep(seconds)
            self._session.cluster.runtime.start()

    def _kubelet(self, seconds: float) -> None:
        with self._killed("kubelet") as daemon:
            time.sleep(seconds)
            self._again(daemon, self._parts.kubelet_answers, "it answers")

    def _api_server_outage(self, seconds: float) -> None:
        with self._killed("kube-apiserver") as server, self._killed("enforcer") as enforcer:
            time.sleep(seconds)
            if self._parts.need_api_server:
                with suppress(LabError):
                    self._enforcer_again(enforcer, WITHOUT_API_SECONDS)
            else:
                self._enforcer_again(enforcer)
            time.sleep(seconds)
            self._again(server, self._session.cluster.api.ready, "it is ready")
            self._enforcer_again(enforcer)


def _logged(log: LogLines, text: str) -> bool:
    return any(text in line.text for line in log.lines())
