"""A node in a virtual machine: kubelet, containerd and enforcer run in it, all else on the host.

It has NUMA nodes, threads and cgroup v2 on any host. The enforcer is this checkout, run by this
Python: the host's files are mounted in the guest at /host after the snapshot is resumed.
"""

import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.servers import GUEST_VIEW, ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.node.agents import Agent, enforcer_account, enforcer_options
from numapin_lab.node.kubelet import READY_SECONDS, REGISTER_SECONDS
from numapin_lab.processes.daemons import LOG_LINES, wait_until
from numapin_lab.state import VM_NODE as NODE
from numapin_lab.vm.initramfs import mount_host
from numapin_lab.vm.node_files import KUBELET_ROOT, NRI_SOCKET, SOCKET, kubelet_config
from numapin_lab.vm.node_machine import NodeMachine
from numapin_lab.vm.snapshot import Snapshot

HOST = "/host"
ENFORCER = Path("/run/enforcer")
STANDBY = Path("/run/standby")
ENFORCER_PORT = 8081
SOCKETS = (
    f"--cri-socket={SOCKET}",
    f"--nri-socket={NRI_SOCKET}",
    f"--pod-resources-socket={KUBELET_ROOT}/pod-resources/kubelet.sock",
)
GUEST_POLL_SECONDS = 0.5
# Mounted after the snapshot is loaded: QEMU cannot save a machine with a 9p mount.
SHARE = f"""mount | grep -q ' {HOST} ' || {{
  {mount_host(HOST)}
  for folder in proc sys dev run; do mount --rbind /$folder {HOST}/$folder; done
}}"""
NEW_CONFIG = """old=/etc/kubernetes/kubelet.yaml
cmp -s /run/kubelet.yaml $old || {
  cp /run/kubelet.yaml $old; kill -9 $(cat /run/kubelet.pid); start-kubelet
}"""
# A log text of the kubelet. Source: kubernetes pkg/kubelet/kubelet_node_status.go.
REGISTERED = "Successfully registered node"
# Source: k8s.io/kubelet config/v1beta1, the default of `healthzPort`.
HEALTH = "http://127.0.0.1:10248/healthz"
KUBELET_GOES_ON = "kill -CONT $(cat /run/kubelet.pid) 2>/dev/null || start-kubelet"


@dataclass(frozen=True)
class VmNode:
    """The node, resumed from a snapshot. `machine` runs commands in it.

    `settings` are fields of its KubeletConfiguration; they override the snapshot's. If there are
    any, the kubelet is restarted, which takes some seconds.
    """

    machine: NodeMachine
    plane: ControlPlane
    settings: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> None:
        """Start to load the snapshot if the machine does not run; returns at once."""
        self.machine.start()

    def join(self) -> None:
        """Resume the machine; returns when its kubelet has registered the Node.

        Raises:
            LabError: the guest stopped or its kubelet does not register; the message has the end of
                the console.
        """
        self.machine.resume()
        config = yaml.safe_dump({**kubelet_config(), **self.settings})
        self.machine.put(Path("/run/kubelet.yaml"), config.encode())
        self.machine(f"{SHARE}\n{NEW_CONFIG}\n{KUBELET_GOES_ON}")
        # The Node object is no proof: it may be that of an earlier machine.
        registered = f"grep -q '{REGISTERED}' /run/kubelet.log"
        wait_until(
            lambda: self.machine.run_script(registered).status == 0,
            f"node {NODE}",
            REGISTER_SECONDS,
            self.machine.daemon,
            GUEST_POLL_SECONDS,
        )

    def wait_ready(self) -> None:
        """Return when the node is Ready and has no taint."""
        what = f"node {NODE} to be Ready"
        wait_until(lambda: self.plane.node_ready(NODE), what, READY_SECONDS, self.machine.daemon)


def continued(snapshot: Snapshot, plane: ControlPlane, run: Path, enforcer_port: int) -> VmNode:
    """A node that joins `plane`.

    Args:
        snapshot: what the node is resumed from.
        plane: its certificate authority is the snapshot's.
        run: folder for sockets.
        enforcer_port: port on the host's loopback, forwarded to the enforcer's port in the guest.
    """
    forwards = f",hostfwd=tcp:127.0.0.1:{enforcer_port}-:{ENFORCER_PORT}"
    options = snapshot.options(plane.ports.apiserver, forwards)
    return VmNode(NodeMachine(plane.folder / "vm", run, options, (enforcer_port,)), plane)


def take_over_authority(snapshot: Snapshot, plane: ControlPlane) -> None:
    """Make the snapshot's certificate authority that of the cluster, which has none yet.

    Raises:
        LabError: the cluster has another one.
    """
    ours = plane.authority
    if ours.certificate.exists():
        if ours.certificate.read_bytes() != snapshot.authority.certificate.read_bytes():
            raise LabError(f"the lab in {plane.folder} was made of another snapshot: take it down")
        return
    ours.folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca.key", "ca.crt"):
        target = ours.folder / name
        target.touch(mode=0o600)
        shutil.copyfile(snapshot.authority.folder / name, target)


@dataclass(frozen=True)
class GuestDaemon:
    """A process in the guest; `folder` in the guest has its pid and its log."""

    name: str
    folder: Path
    command: tuple[str, ...]
    machine: NodeMachine

    @property
    def pid_file(self) -> Path:
        """The file in the guest with its pid."""
        return self.folder / "pid"

    @property
    def log(self) -> Path:
        """Its log in the guest."""
        return self.folder / "log"

    def pid(self) -> int | None:
        """Its pid in the guest; None if the process or the guest does not run."""
        if self.machine.daemon.pid() is None:
            return None
        script = f"pid=$(cat {self.pid_file}) && kill -0 $pid && echo $pid"
        answer = self.machine.run_script(script)
        return int(answer.output) if answer.status == 0 else None

    def start(self) -> None:
        """Start the process; it keeps running after the command that starts it."""
        command = f"setsid {shlex.join(self.command)} >>{self.log} 2>&1 </dev/null &"
        self.machine(f"mkdir -p {self.folder}; {command}\necho $! >{self.pid_file}")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal.

        Raises:
            LabError: it does not run.
        """
        self.machine(f"kill -{number.name.removeprefix('SIG')} $(cat {self.pid_file})")

    def failure(self, what: str) -> LabError:
        """An error with `what` and the end of the log."""
        tail = self.machine.run_script(f"tail -n {LOG_LINES} {self.log}").output
        return LabError(f"{what}; the end of {self.log} in the guest:\n{tail}")


class GuestKubelet(GuestDaemon):
    """The kubelet, which was started with the snapshot."""

    @property
    def pid_file(self) -> Path:
        """As `start-kubelet` writes it."""
        return self.folder / "kubelet.pid"

    @property
    def log(self) -> Path:
        """As `start-kubelet` writes it."""
        return self.folder / "kubelet.log"

    def start(self) -> None:
        """Start it."""
        self.machine(shlex.join(self.command))

    def answers(self) -> bool:
        """Whether its own probe succeeds."""
        return self.machine.run_script(f"wget -q -O - {HEALTH} | grep -q ok").status == 0


@dataclass(frozen=True)
class GuestEnforcer(Agent):
    """The enforcer, running beside the kubelet in the guest."""

    machine: NodeMachine

    @property
    def daemon(self) -> GuestDaemon:
        """The process in the guest."""
        address = f"--health-address=0.0.0.0:{ENFORCER_PORT}"
        login = ENFORCER / "kubeconfig"
        command = ("chroot", HOST, sys.executable, *self.arguments(login), address)
        return GuestDaemon(self.name, ENFORCER, command, self.machine)

    def _log_in(self) -> None:
        """Copy the login: the guest may see changes of the host's files late."""
        super()._log_in()
        shell, server = self.machine, f"https://{GUEST_VIEW}:{self.plane.ports.apiserver}"
        login = kubeconfig.render(
            server, ENFORCER / "ca.crt", {"tokenFile": str(ENFORCER / "token")}
        )
        shell(f"mkdir -p {ENFORCER}")
        shell.put(ENFORCER / "token", (self.folder / "token").read_bytes())
        shell.put(ENFORCER / "ca.crt", self.plane.ca.read_bytes())
        shell.put(ENFORCER / "kubeconfig", yaml.safe_dump(login).encode())

    def wait_ready(self) -> None:
        """Return when it is ready; polls slowly, since each probe loads the guest."""
        what = f"the {self.name} to be ready"
        wait_until(self.ready, what, READY_SECONDS, self.daemon, GUEST_POLL_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash does; returns when it has ended."""
        self._end("KILL")

    def stop(self) -> None:
        """End it with SIGTERM, as the kubelet ends a pod."""
        self._end("TERM")

    def _end(self, signal: str) -> None:
        script = f"pid=$(cat {ENFORCER}/pid); kill -{signal} $pid"
        self.machine(f"{script}; while kill -0 $pid; do sleep .1; done 2>/dev/null; true")


def guest_enforcer(node: VmNode, port: int) -> GuestEnforcer:
    """The enforcer of a virtual node, with the token of a pod on that node."""
    return GuestEnforcer(
        name="enforcer",
        port=port,
        plane=node.plane,
        account=enforcer_account(NODE),
        options=(*_host_options(), *SOCKETS),
        machine=node.machine,
    )


def guest_standby(node: VmNode) -> GuestDaemon:
    """A standby in a virtual node, which a lab does not start by itself."""
    command = ("chroot", HOST, sys.executable, "-m", "numapin_enforcer.standby", *_host_options())
    return GuestDaemon("standby", STANDBY, command, node.machine)


def guest_kubelet(node: VmNode) -> GuestKubelet:
    """The kubelet of a virtual node."""
    return GuestKubelet("kubelet", Path("/run"), ("start-kubelet",), node.machine)


def _host_options() -> tuple[str, ...]:
    """The options that enforcer and standby of a virtual node share."""
    return (
        *enforcer_options(NODE),
        "--cgroup-root=/",
        f"--state-dir={ENFORCER / 'state'}",
        f"--run-dir={ENFORCER / 'run'}",
        f"--kubelet-state-dir={KUBELET_ROOT}",
    )
