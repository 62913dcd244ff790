"""One part of a lab: how it is killed, stopped and started, and when it is ready again."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from numapin_campaigns.parts.logs import LogLines
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import POLL_SECONDS, Watched, kill, stop, wait_until
from numapin_lab.vm.node import GuestDaemon

OPERATOR, ENFORCER, STANDBY = "operator", "enforcer", "standby"
API_SERVER, KUBELET, CONTAINERD = "kube-apiserver", "kubelet", "containerd"
AGENTS: Final = (OPERATOR, ENFORCER, STANDBY)

READY_SECONDS: Final = 300.0
END_SECONDS: Final = 60.0


def _at_once(_: float) -> bool:
    return True


@dataclass
class Part:
    """A process that a campaign kills, stops and starts.

    Attributes:
        daemon: the process. A pod's is started by the kubelet, and not by `start`.
        is_ready: whether it is ready again, by when it had ended (seconds of UTC).
        begin: starts it, where that takes more than `daemon.start`.
        grace_seconds: for so long it may end in good order when it is killed.
        poll_seconds: between two questions whether it is ready; each of them loads a guest.
        says: what it answers when it is asked why it is not ready.
    """

    daemon: Watched
    is_ready: Callable[[float], bool] = _at_once
    begin: Callable[[], object] | None = None
    grace_seconds: float = 0.0
    poll_seconds: float = POLL_SECONDS
    says: Callable[[], str] = str
    _ended_at: float = field(default=0.0, init=False)

    def kill(self) -> bool:
        """Kill it, also while it is stopped; returns when it has ended, and whether it ran."""
        pid = self.daemon.pid()
        if pid is not None:
            self._end(pid)
        self._ended_at = time.time()
        return pid is not None

    def stop(self) -> bool:
        """Stop it (SIGSTOP), if it runs; returns whether it does."""
        return self._send(signal.SIGSTOP)

    def start(self) -> bool:
        """Let it go on, or start it; returns at once, and whether it was started.

        Its login is that of its first start, which outlives every run.
        """
        if self._send(signal.SIGCONT):
            return False
        (self.begin or self.daemon.start)()
        return True

    def ready(self) -> bool:
        """Whether it is ready, since it was killed last."""
        return self.is_ready(self._ended_at)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Return when it runs and is ready.

        Raises:
            LabError: it has ended, or is not ready in time; the message has what it says.
        """
        daemon = self.daemon
        wait_until(lambda: daemon.pid() is not None, f"a new {daemon.name}", seconds)
        what = f"the {daemon.name} to be ready"
        try:
            wait_until(self.ready, what, seconds, daemon, self.poll_seconds)
        except LabError as error:
            raise LabError(f"{error}\nits answer: {self.says() or 'none'}") from error

    def _end(self, pid: int) -> None:
        if isinstance(self.daemon, GuestDaemon):
            self.daemon.send(signal.SIGKILL)
            what = f"{self.daemon.name} to end"
            wait_until(lambda: self.daemon.pid() is None, what, END_SECONDS)
        elif self.grace_seconds:
            stop(pid, self.grace_seconds)
        else:
            kill(pid)

    def _send(self, number: signal.Signals) -> bool:
        """Send a signal, if it runs."""
        pid = self.daemon.pid()
        if pid is None:
            return False
        if isinstance(self.daemon, GuestDaemon):
            self.daemon.send(number)
        else:
            os.kill(pid, number)
        return True


@dataclass
class LoggingPart(Part):
    """A part that is ready when it has logged a text since it was killed."""

    log: Callable[[], LogLines] = field(kw_only=True)
    """Its log, from the present end on."""
    text: str = field(kw_only=True)
    _since: LogLines | None = field(default=None, init=False)

    def kill(self) -> bool:
        """Kill it, and remember what it had logged."""
        self._since = self.log()
        return super().kill()

    def ready(self) -> bool:
        """Whether it has logged the text since then."""
        lines = self._since.lines() if self._since else ()
        return any(self.text in line.text for line in lines)
