"""Numapin's pods as parts of a chaos run; the kubelet starts what was killed."""

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, Self

from numapin_api.names import NAMESPACE
from numapin_campaigns.faults.state_folder import StateFolder
from numapin_campaigns.faults.state_folder_of_pods import own_file_system_of_pods
from numapin_campaigns.observation.cluster_state import until_answered
from numapin_campaigns.observation.logs import Line, parse
from numapin_campaigns.parts.installation import PROBE_SECONDS, LogLines
from numapin_lab.errors import LabError
from numapin_lab.installed.running import LEASE, PARTS, InstalledLab
from numapin_lab.node.cgroups import below
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.node.image import find_busybox

PORTS: Final = {"operator": 8080, "enforcer": 8081}
LOOK_SECONDS: Final = 0.25

KUBELET: Final[Mapping[str, Any]] = {
    "featureGates": {"KubeletCrashLoopBackOffMax": True},
    "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
}
"""Settings of the kubelet. As it is set up by default, it waits up to 5 minutes before it starts a
container again that was killed some times, and nothing would be down meanwhile but this part."""


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


@dataclass
class KeptLogs:
    """The files of all containers of one part, open: the kubelet deletes those of older ones."""

    folder: Path
    part: str
    files: dict[tuple[str, int], IO[bytes]] = field(default_factory=dict)

    def look(self) -> None:
        """Open what is new."""
        pattern = f"{NAMESPACE}_numapin-{self.part}-*/{self.part}/*.log"
        for path in sorted(self.folder.glob(pattern)):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                key = (str(path.parent), os.fstat(file.fileno()).st_ino)
                if key in self.files:
                    file.close()
                else:
                    self.files[key] = file

    def sizes(self) -> dict[tuple[str, int], int]:
        """How long each is."""
        return {key: os.fstat(file.fileno()).st_size for key, file in self.files.items()}

    def texts(self, since: Mapping[tuple[str, int], int]) -> Iterator[str]:
        """What was logged after each had this length, as text lines."""
        for key, file in list(self.files.items()):
            start = since.get(key, 0)
            found = os.pread(file.fileno(), os.fstat(file.fileno()).st_size - start, start)
            yield from plain(found.decode(errors="replace").splitlines())


def plain(lines: Iterable[str]) -> Iterator[str]:
    """Lines of the kubelet's log file of a container whose program writes JSON, as text lines.

    Source: Kubernetes, the CRI's log format: time, stream, P (partial) or F, text.
    """
    text = ""
    for line in lines:
        _, _, tag, part = (*line.split(" ", 3), "", "", "", "")[:4]
        text += part
        if tag == "P":
            continue
        yield from _plain(text)
        text = ""


def _plain(text: str) -> Iterator[str]:
    try:
        entry = json.loads(text)
        at, level, logger, said = (entry.pop(name) for name in ("time", "level", "logger", "text"))
    except (ValueError, AttributeError, KeyError):
        yield text
        return
    traceback = str(entry.pop("traceback", ""))
    fields = "".join(f" {name}={value}" for name, value in entry.items())
    yield f"{at} {str(level).upper()} {logger}: {said}{fields}"
    yield from traceback.splitlines()


@dataclass(frozen=True)
class PodLog:
    """What one part has logged since this was made."""

    kept: KeptLogs
    since: Mapping[tuple[str, int], int]

    def lines(self) -> Iterator[Line]:
        """In the order of time, over all containers."""
        self.kept.look()
        return iter(sorted(parse(self.kept.texts(self.since)), key=lambda line: line.at))


class PodParts:
    """Numapin's pods. `with` it, logs are kept."""

    need_api_server = True
    """A restarted kubelet asks for the token of a pod again before it starts a container of it."""

    def __init__(self, lab: InstalledLab) -> None:
        self._lab = lab
        self._daemons = {name: PodProcess(name, lab.kubepods) for name in PARTS}
        folder = lab.cluster.kubelet.pod_logs
        self._logs = {name: KeptLogs(folder, name) for name in PARTS}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="logs of pods")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for kept in self._logs.values():
            for file in kept.files.values():
                file.close()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
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
