"""kube-controller-manager and kube-scheduler."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.certificates import Identity
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import Daemon

EMULATED: Final = "--node-monitor-grace-period=10m"
"""A node in a virtual machine may be starved for minutes; its pods would be evicted."""


@dataclass(frozen=True)
class Controller:
    """One of the two, with a login under its own name."""

    name: str
    port: int
    plane: ControlPlane
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Its log, pid and kubeconfig."""
        return self.plane.folder / self.name

    @property
    def daemon(self) -> Daemon:
        """The process."""
        login = self.folder / "kubeconfig"
        command = (
            str(self.plane.programs[self.name]),
            f"--kubeconfig={login}",
            f"--authentication-kubeconfig={login}",
            f"--authorization-kubeconfig={login}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder}",
            "--leader-elect=false",  # there is one of each
            *self.options,
        )
        return Daemon(self.name, self.folder, command, self.plane.folder, ports=(self.port,))

    def start(self) -> None:
        """Start it if it does not run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        certificate, key = self.plane.authority.issue(self.name, Identity(f"system:{self.name}"))
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        kubeconfig.write(self.folder / "kubeconfig", self.plane.server, self.plane.ca, user)
        if self.daemon.pid() is None:
            self.daemon.start()


def controller_manager(plane: ControlPlane, port: int, *, emulated: bool) -> Controller:
    """Creates service accounts, removes the not-ready taint, collects garbage.

    Args:
        plane: the control plane.
        port: where it serves.
        emulated: whether the node runs in a virtual machine.
    """
    pki = plane.authority.folder
    options = (
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={plane.ca}",
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=false",
        f"--flex-volume-plugin-dir={plane.folder / 'kube-controller-manager' / 'volume-plugins'}",
        *([EMULATED] * emulated),
    )
    return Controller("kube-controller-manager", port, plane, options)


def scheduler(plane: ControlPlane, port: int) -> Controller:
    """Binds pods to the node."""
    return Controller("kube-scheduler", port, plane)
