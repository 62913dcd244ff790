"""Operator, enforcer and standby as processes, with the identities that their pods would have."""

import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from numapin_api.names import ENFORCER_SERVICE_ACCOUNT, NAMESPACE, OPERATOR_SERVICE_ACCOUNT
from numapin_lab.cleanup import in_memory
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.node.kubelet import Kubelet
from numapin_lab.processes.daemons import Daemon, Watched, kill, stop, wait_until

READY_SECONDS = 300
STOP_SECONDS = 10.0
PROBE_SECONDS = 5


@dataclass(frozen=True)
class Agent:
    """The operator or the enforcer of the cluster of `plane`.

    `port` serves its probes on loopback; `options` is its command line without the login and the
    address of the probes; `python` has the program.
    """

    name: str
    port: int
    plane: ControlPlane
    account: ServiceAccount
    options: tuple[str, ...]
    python: str = field(default=sys.executable, kw_only=True)

    @property
    def folder(self) -> Path:
        """Its log, pid, login and state."""
        return self.plane.folder / self.name

    @property
    def daemon(self) -> Watched:
        """The process."""
        address = f"--health-address=127.0.0.1:{self.port}"
        command = (self.python, *self.arguments(self.folder / "kubeconfig"), address)
        return Daemon(self.name, self.folder, command, self.plane.folder, ports=(self.port,))

    def arguments(self, login: Path) -> tuple[str, ...]:
        """The arguments of Python, with the login in this kubeconfig."""
        return ("-m", f"numapin_{self.name}", f"--kubeconfig={login}", *self.options)

    def start(self) -> None:
        """Renew its login, and start it if it does not run."""
        self._log_in()
        if self.daemon.pid() is None:
            self.daemon.start()

    def _log_in(self) -> None:
        log_in(self.plane, self.account, self.folder)

    def wait_ready(self) -> None:
        """Wait until /readyz succeeds."""
        wait_until(self.ready, f"the {self.name} to be ready", READY_SECONDS, self.daemon)

    def ready(self) -> bool:
        """Whether /readyz succeeds."""
        url = f"http://127.0.0.1:{self.port}/readyz"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it with SIGTERM, and after a grace period with SIGKILL."""
        pid = self.daemon.pid()
        if pid is not None:
            stop(pid, STOP_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL."""
        pid = self.daemon.pid()
        if pid is not None:
            kill(pid)


def operator(plane: ControlPlane, port: int) -> Agent:
    """The operator, without leader election.

    A killed operator is then replaced at once, and not only when its lease has expired.
    """
    account = ServiceAccount(NAMESPACE, OPERATOR_SERVICE_ACCOUNT)
    options = (f"--namespace={NAMESPACE}", "--no-leader-elect", "--numa-metrics")
    return Agent("operator", port, plane, account, options)


def enforcer(kubelet: Kubelet, port: int) -> Agent:
    """The enforcer of the node of `kubelet`."""
    runtime = kubelet.runtime
    sockets = (f"--cri-socket={runtime.socket}", f"--nri-socket={runtime.nri_socket}")
    devices = f"--pod-resources-socket={kubelet.pod_resources_socket}"
    others = (f"--cdi-dir={runtime.cdi}", devices, "--cpu-metrics")
    options = (*_node_options(kubelet), *sockets, *others)
    return Agent("enforcer", port, kubelet.plane, enforcer_account(kubelet.node), options)


def standby(kubelet: Kubelet, python: str = sys.executable) -> Daemon:
    """The standby, which fences new pods while the enforcer is down; it uses no API server."""
    lab = kubelet.plane.folder
    command = (python, "-m", "numapin_enforcer.standby", *_node_options(kubelet))
    return Daemon("standby", lab / "standby", command, lab)


def _node_options(kubelet: Kubelet) -> tuple[str, ...]:
    return (
        *enforcer_options(kubelet.node),
        f"--cgroup-root={kubelet.runtime.cgroup.path}",
        f"--state-dir={kubelet.plane.folder / 'enforcer' / 'state'}",
        f"--run-dir={in_memory(kubelet.runtime.run) / 'enforcer'}",
        f"--kubelet-state-dir={kubelet.root}",
    )


def enforcer_account(node: str) -> ServiceAccount:
    """The account of the enforcer; its token names the node, as the token of a pod does."""
    return ServiceAccount(NAMESPACE, ENFORCER_SERVICE_ACCOUNT, node)


def enforcer_options(node: str) -> tuple[str, ...]:
    """Options that the enforcer of every node has."""
    folders = ("--sysfs=/sys", "--cgroupfs=/sys/fs/cgroup", "--procfs=/proc")
    return (f"--node-name={node}", *folders)
