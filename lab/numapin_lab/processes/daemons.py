"""Daemons of a lab: each has a folder with its pid and its log, and outlives the command.

A process is identified by pid *and* start time, so that another process with the same pid is never
signalled. Every process also has the folder of the lab in its environment (`MARK`): `marked` finds
processes whose pid file was never written, and processes that they have started.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from numapin_lab.errors import LabError
from numapin_lab.processes.ports import is_free

MARK = "NUMAPIN_LAB_FOLDER"
POLL_SECONDS = 0.05
PORT_SECONDS = 30.0
KILL_SECONDS = 120.0
LOG_LINES = 15


class Watched(Protocol):
    """A process whose end is an error for those who wait for it."""

    @property
    def name(self) -> str:
        """For people."""

    def pid(self) -> int | None:
        """The running process, or None."""

    def start(self) -> object:
        """Start it; it outlives us."""

    def failure(self, what: str) -> LabError:
        """The error for `what`, with the end of its log."""


@dataclass(frozen=True)
class Daemon:
    """A process. `folder` is its own: `pid`, `log`, its data."""

    name: str
    folder: Path
    command: tuple[str, ...]
    lab: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()

    @property
    def log(self) -> Path:
        """Standard output and error of every start, in order."""
        return self.folder / "log"

    def pid(self) -> int | None:
        """The running process, or None."""
        return read_pid(self.folder)

    def start(self) -> int:
        """Start it, detached from the terminal and the session of this process.

        Raises:
            LabError: one of its ports stays taken.
        """
        for port in self.ports:
            # A killed process holds its sockets until its last thread has ended.
            wait_until(partial(is_free, port), f"port {port} of {self.name}", PORT_SECONDS)
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {**_plain_environment(), **self.environment, MARK: str(self.lab)}
        with self.log.open("ab") as log:
            # Not subprocess: its object would wait for a process that outlives this one.
            pid = os.posix_spawnp(
                self.command[0],
                self.command,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
                setsid=True,
            )
        (self.folder / "pid").write_text(f"{pid} {_started(pid)}\n")
        return pid

    def failure(self, what: str) -> LabError:
        """The error for `what`, with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return LabError(f"{what}; the end of {self.log}:\n" + "\n".join(lines))


def _plain_environment() -> dict[str, str]:
    """The environment of daemons: without proxies, KUBECONFIG and settings of Go."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    # iptables, runc and modprobe are in sbin, which the PATH of a user may lack.
    found["PATH"] = f"{found.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    return found


def read_pid(folder: Path) -> int | None:
    """The pid in `folder`, if that process still runs."""
    try:
        pid, started = (int(word) for word in (folder / "pid").read_text().split())
    except (FileNotFoundError, ValueError):
        return None
    return pid if _started(pid) == started else None


def _started(pid: int) -> int | None:
    """Start time in ticks since boot; None when there is no such process or it is a zombie.

    A killed process shows as a zombie while threads of it still hold its sockets: it is there until
    one thread is left. Source: proc_pid_stat(5), fields 3 (state), 20 (num_threads) and 22
    (starttime); field 2 may hold spaces.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    ended = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if ended else int(fields[19])


def marked(lab: Path) -> Iterator[int]:
    """Every process with the mark of this lab in its environment, except this one."""
    mark = f"{MARK}={lab}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables and _started(int(entry.name)) is not None:
            yield int(entry.name)


def stop(pid: int, grace_seconds: float) -> None:
    """Send SIGTERM, and SIGKILL after `grace_seconds`; returns when the process is gone."""
    if not _ends(pid, signal.SIGTERM, grace_seconds):
        kill(pid)


def kill(pid: int) -> None:
    """Send SIGKILL; returns when the process is gone."""
    if not _ends(pid, signal.SIGKILL, KILL_SECONDS):
        raise LabError(f"process {pid} does not end, even when killed: look at /proc/{pid}/stack")


def _ends(pid: int, number: signal.Signals, seconds: float) -> bool:
    _reap(pid)
    started = _started(pid)
    deadline = time.monotonic() + seconds
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    while started is not None and _started(pid) == started:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
        _reap(pid)
    return True


def _reap(pid: int) -> None:
    """Collect the exit status of a child, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def wait_until(
    ready: Callable[[], bool],
    what: str,
    seconds: float,
    daemon: Watched | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Wait until `ready` returns true, while the daemon it depends on runs.

    `poll_seconds` is the pause between two calls; more where a call slows down what it waits for.

    Raises:
        LabError: the daemon ended, or `seconds` passed; the message holds the end of its log.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if daemon is not None and daemon.pid() is None:
            raise daemon.failure(f"{daemon.name} ended while waiting for {what}")
        if time.monotonic() > deadline:
            waited = f"waited {seconds:.0f} s in vain for {what}"
            raise LabError(waited) if daemon is None else daemon.failure(waited)
        time.sleep(poll_seconds)
