"""Device plug-in and DRA driver as processes in a node that is a virtual machine."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.devices.devices import Device, dump
from numapin_lab.devices.dra_plugin import REGISTRY
from numapin_lab.devices.plugin import FOLDER
from numapin_lab.vm.node import HOST, GuestDaemon
from numapin_lab.vm.node_files import KUBELET_ROOT
from numapin_lab.vm.node_machine import NodeMachine

SOCKETS: Final = Path("/run/device-plugins")
"""The kubelet's folder of sockets as the plug-in sees it: it runs in the host's root, and shares
`/run` with the guest."""

DRA_SOCKETS: Final = Path("/run/dra-drivers")
"""The same for DRA drivers."""


def share_sockets(machine: NodeMachine) -> None:
    """Show plug-ins the folder of sockets; the kubelet opens them there when it starts next."""
    registry = KUBELET_ROOT / REGISTRY
    for own, kubelets in ((SOCKETS, FOLDER), (DRA_SOCKETS, registry)):
        machine(f"mkdir -p {own} {kubelets}; mount --bind {own} {kubelets}")


@dataclass(frozen=True)
class GuestPlugin:
    """The plug-in of one resource; see `share_sockets`."""

    machine: NodeMachine
    resource: str

    @property
    def daemon(self) -> GuestDaemon:
        """The process in the guest."""
        folder = Path("/run") / f"plugin-{self.resource.replace('/', '-')}"
        program = ("chroot", HOST, sys.executable, "-m", "numapin_lab.devices", self.resource)
        command = (*program, str(folder / "devices"), f"--folder={SOCKETS}")
        return GuestDaemon("plugin", folder, command, self.machine)

    def start(self, *devices: Device) -> None:
        """Offer these devices; the plug-in registers when the kubelet lets it."""
        folder = self.daemon.folder
        self.machine(f"mkdir -p {folder}")
        self.machine.put(folder / "devices", dump(devices).encode())
        self.daemon.start()


@dataclass(frozen=True)
class GuestDriver:
    """A DRA driver; see `share_sockets`. A test publishes its devices (see `slices`)."""

    machine: NodeMachine
    driver: str

    def start(self) -> None:
        """Start it; the kubelet finds its socket."""
        program = ("chroot", HOST, sys.executable, "-m", "numapin_lab.devices", self.driver)
        command = (*program, "--dra", f"--folder={DRA_SOCKETS}")
        folder = Path("/run") / f"driver-{self.driver}"
        GuestDaemon("driver", folder, command, self.machine).start()
