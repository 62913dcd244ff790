"""numapin's own two programs, run as processes with the identities their pods would have."""

import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from numapin_api.names import ENFORCER_SERVICE_ACCOUNT, NAMESPACE, OPERATOR_SERVICE_ACCOUNT
from numapin_lab.identities import ServiceAccount, log_in
from numapin_lab.kubelet import Kubelet
from numapin_lab.processes import Daemon, stop, wait_until

READY_SECONDS = 300
STOP_SECONDS = 10.0
PROBE_SECONDS = 5


@dataclass(frozen=True)
class Agent:
    """The operator or the enforcer of the cluster that `kubelet` belongs to."""

    name: str
    port: int
    kubelet: Kubelet
    account: ServiceAccount
    options: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Its log, pid, login and state."""
        return self.kubelet.plane.folder / self.name

    @property
    def daemon(self) -> Daemon:
        """The process."""
        command = (
            sys.executable,
            "-m",
            f"numapin_{self.name}",
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--health-address=127.0.0.1:{self.port}",
            *self.options,
        )
        lab = self.kubelet.plane.folder
        return Daemon(self.name, self.folder, command, lab, ports=(self.port,))

    def start(self) -> None:
        """Start it if it does not run; the login is renewed in any case."""
        log_in(self.kubelet.plane, self.account, self.folder)
        if self.daemon.pid() is None:
            self.daemon.start()

    def wait_ready(self) -> None:
        """Return when it does its work, as far as there is any."""
        wait_until(self.ready, f"the {self.name} to be ready", READY_SECONDS, self.daemon)

    def ready(self) -> bool:
        """What it answers on /readyz."""
        url = f"http://127.0.0.1:{self.port}/readyz"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it as a pod is ended."""
        pid = self.daemon.pid()
        if pid is not None:
            stop(pid, STOP_SECONDS)


def operator(kubelet: Kubelet, port: int) -> Agent:
    """Decides. It is the only one here, and stands for no election.

    So one that was killed is replaced at once, not when the lease of the dead one has run out.
    """
    account = ServiceAccount(NAMESPACE, OPERATOR_SERVICE_ACCOUNT)
    return Agent(
        "operator", port, kubelet, account, (f"--namespace={NAMESPACE}", "--no-leader-elect")
    )


def enforcer(kubelet: Kubelet, port: int) -> Agent:
    """Acts on the node. Its token names the node, as the token of a pod on the node does."""
    account = ServiceAccount(NAMESPACE, ENFORCER_SERVICE_ACCOUNT, kubelet.node)
    folder = kubelet.plane.folder / "enforcer"
    options = (
        f"--node-name={kubelet.node}",
        f"--cri-socket={kubelet.runtime.socket}",
        "--sysfs=/sys",
        "--cgroupfs=/sys/fs/cgroup",
        "--procfs=/proc",
        f"--cgroup-root={kubelet.runtime.cgroup.path}",
        f"--state-dir={folder / 'state'}",
        f"--kubelet-state-dir={kubelet.root}",
    )
    return Agent("enforcer", port, kubelet, account, options)
