"""Numapin's pods as parts of a lab; the kubelet starts what was killed."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_campaigns.frame.observe import Observer, until_answered
from numapin_campaigns.parts.installation import PROBE_SECONDS
from numapin_campaigns.parts.logs import LogLines
from numapin_campaigns.parts.pod_logs import KeptLogs, PodLog
from numapin_campaigns.parts.state_folder import StateFolder
from numapin_campaigns.parts.state_folder_of_pods import own_file_system_of_pods
from numapin_lab.errors import LabError
from numapin_lab.installed.running import LEASE, PARTS, InstalledLab
from numapin_lab.node.cgroups import below
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.node.image import find_busybox

PORTS: Final = {"operator": 8080, "enforcer": 8081}
LOOK_SECONDS: Final = 0.25


@dataclass
class PodProcess:
    """The process of a part; the oldest one if several pods have it. It is found without the API.

    Of two operators the older one leads, unless its lead has been lost.
    """

    name: str
    kubepods: Path
    _known: int = 0

    def pid(self) -> int | None:
        """The running process, or None."""
        if not self._is(self._known):
            self._known = min(self._found(), default=(0, 0))[1]
        return self._known or None

    def start(self) -> None:
        """Do nothing: the kubelet starts it."""

    def failure(self, what: str) -> LabError:
        """The error for `what`."""
        return LabError(f"{what}; see `kubectl -n {NAMESPACE} logs -p` of the {self.name}")

    def _found(self) -> Iterator[tuple[int, int]]:
        """Start time and pid of each."""
        for folder in below(self.kubepods / "burstable"):
            with suppress(OSError):
                for pid in map(int, (folder / "cgroup.procs").read_text().split()):
                    if self._is(pid):
                        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                        yield int(fields[19]), pid  # Source: proc_pid_stat(5), starttime

    def _is(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2]
        except OSError:
            return False
        return any(word.endswith(f"/numapin-{self.name}".encode()) for word in words)


class AsPods(Observer):
    """Numapin's pods. `with` it, logs are kept."""

    poll_seconds = LOOK_SECONDS
    need_api_server = True
    """A restarted kubelet asks for the token of a pod again before it starts a container of it."""

    def __init__(self, lab: InstalledLab) -> None:
        self._lab = lab
        self._daemons = {name: PodProcess(name, lab.kubepods) for name in PARTS}
        folder = lab.cluster.kubelet.pod_logs
        self._logs = {name: KeptLogs(folder, name) for name in PARTS}
        super().__init__("logs of pods")

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for kept in self._logs.values():
            for file in kept.files.values():
                file.close()

    def look(self) -> None:
        """Open the files of new containers."""
        for kept in self._logs.values():
            kept.look()

    @property
    def daemons(self) -> Mapping[str, PodProcess]:
        """The process of each part."""
        return self._daemons

    def log(self, name: str) -> LogLines:
        """The files that the kubelet writes."""
        kept = self._logs[name]
        kept.look()
        return PodLog(kept, kept.sizes())

    def page(self, name: str, page: str) -> bytes:
        """From its port in the network of its pod; of the older one if there are two."""
        pid = self._daemons[name].pid()
        return b"" if pid is None else probe_of(pid, PORTS[name], page)

    def operator_decides(self, since: float) -> bool:
        """Whether the Lease was renewed: a killed leader renews it no more."""
        lease = until_answered(lambda: self._lab.cluster.api.get(LEASE), None)
        renewed = lease["spec"].get("renewTime") if lease else None
        return bool(renewed) and datetime.fromisoformat(str(renewed)).timestamp() > since

    def kubelet_answers(self) -> bool:
        """From its port on loopback of the node."""
        kubelet = self._lab.cluster.kubelet
        pid = kubelet.daemon.pid()
        return pid is not None and probe_of(pid, kubelet.ports.health, "healthz") == b"ok"

    def state_folder(self) -> AbstractContextManager[StateFolder]:
        """A small one of the node."""
        return own_file_system_of_pods(self._lab, self._daemons["enforcer"])


def probe_of(pid: int, port: int, page: str) -> bytes:
    """The body of a probe page on the loopback of a process; empty without an answer."""
    busybox = str(find_busybox(SEARCH_PATH))
    inside = ("nsenter", f"--target={pid}", "--net", "--")
    try:
        answer = subprocess.run(
            (*inside, busybox, "nc", "127.0.0.1", str(port)),
            input=f"GET /{page} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode(),
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b""
    return answer.stdout.partition(b"\r\n\r\n")[2]
