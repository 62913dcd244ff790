"""A control plane for a large cluster: real etcd and kube-apiserver, and a second API server.

etcd does not wait for the disk (as in every lab), because the disk is not what is measured.
"""

import re
import time
import urllib.request
from collections import Counter
from dataclasses import replace
from pathlib import Path

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.daemons import Daemon, kill, wait_until
from numapin_lab.processes.ports import choose
from numapin_lab.processes.usage import cpu_seconds

ETCD_BYTES = 8 << 30
REQUEST = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
PLAIN = re.compile(r"^(\w+) (\S+)$", re.MULTILINE)
STARTED = re.compile(r"^process_start_time_seconds (\S+)$", re.MULTILINE)
READY_SECONDS = 600

Requests = Counter[tuple[str, str, str]]
"""Requests by verb, resource and subresource."""


class LargePlane(ControlPlane):
    """A control plane whose API server can be replaced without an interruption of the service."""

    @property
    def etcd(self) -> Daemon:
        """With room for a large cluster."""
        usual = super().etcd
        options = (f"--quota-backend-bytes={ETCD_BYTES}",)
        return replace(usual, command=usual.command + options)

    @property
    def apiserver(self) -> Daemon:
        """It shares its port with its successor, and accepts as many requests as a large one."""
        usual = super().apiserver
        options = (
            "--permit-port-sharing=true",
            "--max-requests-inflight=1600",
            # Nobody creates the accounts that pods of a real cluster have.
            "--disable-admission-plugins=ServiceAccount",
            "--max-mutating-requests-inflight=800",
        )
        return replace(usual, command=usual.command + options)

    @property
    def successor(self) -> Daemon:
        """A second API server at the same address."""
        first = self.apiserver
        return replace(first, folder=self.folder / "kube-apiserver-2", ports=())

    def started(self) -> float:
        """When the API server that answers was started, in seconds of the epoch."""
        found = STARTED.search(self.api.get("/metrics"))
        return float(found[1]) if found else 0.0

    def cpu_seconds(self) -> dict[int, float]:
        """CPU time of etcd and of each API server that runs, by pid."""
        pids = [one.pid() for one in (self.etcd, self.apiserver, self.successor)]
        return {pid: cpu_seconds(pid) for pid in pids if pid is not None}

    def apiserver_cpu_seconds(self) -> float:
        """CPU time of the API server that runs; of both, while there are two."""
        etcd = self.etcd.pid()
        return sum(used for pid, used in self.cpu_seconds().items() if pid != etcd)

    def etcd_metrics(self) -> dict[str, float]:
        """The metrics of etcd that have no labels. Source: etcd, "Metrics"."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports.etcd}/metrics") as page:
            found = PLAIN.findall(page.read().decode())
        return {name: float(value) for name, value in found}

    def requests(self) -> Requests:
        """All requests that the API server has answered since its start."""
        counted: Requests = Counter()
        for labels, value in REQUEST.findall(self.api.get("/metrics")):
            read = dict(LABEL.findall(labels))
            key = (read["verb"], read["resource"], read["subresource"])
            counted[key] += int(float(value))
        return counted

    def replace_apiserver(self) -> float:
        """Start another API server, then kill the one that runs, as a rolling update does.

        The new one has no history of changes: a watch from a version before its start is answered
        with 410. Returns the seconds for which no API server answered.
        """
        both = (self.apiserver, self.successor)
        old, new = both if both[0].pid() is not None else reversed(both)
        before = self.started()
        for number in range(3):  # so that the versions which watchers know are older
            metadata = {"name": f"later-{number}-{time.time_ns()}", "namespace": "default"}
            self.api.create("/api/v1/namespaces/default/configmaps", {"metadata": metadata})
        replace(new, ports=()).start()  # the port is not free, and need not be
        wait_until(lambda: self._replied_by_other(before), "the new API server", READY_SECONDS)
        pid = old.pid()
        assert pid is not None
        begun = time.monotonic()
        kill(pid)
        wait_until(self.api.ready, "the new API server", READY_SECONDS)
        return time.monotonic() - begun

    def interrupt_apiserver(self, seconds: float) -> None:
        """Kill the API server that runs, and start it again after so many seconds."""
        running = next(one for one in (self.apiserver, self.successor) if one.pid() is not None)
        pid = running.pid()
        assert pid is not None
        kill(pid)
        time.sleep(seconds)
        replace(running, ports=()).start()
        wait_until(self.api.ready, "the API server", READY_SECONDS, running)

    def _replied_by_other(self, before: float) -> bool:
        """New connections go to either; the second one is ready if it serves its metrics."""
        time.sleep(0.5)
        try:
            return self.started() != before and self.api.ready()
        except Exception as error:  # noqa: BLE001 - it is still starting
            return not str(error)

    def stop(self) -> None:
        """End all parts; the folder stays."""
        pid = self.successor.pid()
        if pid is not None:
            kill(pid)
        super().stop()


def large_plane(folder: Path, *others: str) -> LargePlane:
    """A control plane in a folder, on free ports; nothing runs yet.

    Args:
        folder: for all that it writes.
        others: programs that are to be there as well, such as `kube-scheduler`.
    """
    programs = {name: found.path for name, found in provide((*CONTROL_PLANE, *others)).items()}
    return LargePlane(folder, ControlPlanePorts(*choose(3)), programs)
