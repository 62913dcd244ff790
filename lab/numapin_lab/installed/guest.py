"""What a node in a virtual machine needs so that numapin's pods run on it as on any node."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.controlplane.servers import GUEST_VIEW, SERVICE_ADDRESS
from numapin_lab.installed.network import HTTPS
from numapin_lab.node.pod_network import CONFIGURATION, PLUGINS, bridge, find_plugins
from numapin_lab.node.relay import Endpoint, Route
from numapin_lab.vm.initramfs import unpacked_module
from numapin_lab.vm.kernel import Kernel, module_files
from numapin_lab.vm.node import HOST, GuestDaemon, VmNode
from numapin_lab.vm.node_files import KUBELET_ROOT, SOCKET, STATE
from numapin_lab.vm.snapshot import CTR

MODULES: Final = ("bridge", "veth")
IMPORT_SECONDS: Final = 600.0
RELAY: Final = Path("/run/relay")

# Where the manifests look for the container runtime and the kubelet's state.
USUAL_PLACES: Final = {"/run/containerd": SOCKET.parent, "/var/lib/kubelet": KUBELET_ROOT}


@dataclass(frozen=True)
class InstalledGuest:
    """A virtual node with a network for pods, and the usual places of runtime and kubelet.

    `modules` is a folder of this machine for the kernel modules that the node loads.
    """

    node: VmNode
    kernel: Kernel
    modules: Path

    def copy_modules(self) -> None:
        """Write the kernel modules to `modules`, before the machine mounts this one's files."""
        self.modules.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(self._module_files()):
            target = self.modules / f"{number:02}.ko"
            target.write_bytes(unpacked_module(self.kernel.modules / file))

    def _module_files(self) -> list[str]:
        return module_files((self.kernel.modules / "modules.dep").read_text(), MODULES)

    def connect(self) -> None:
        """Give the pods a bridge, from which they reach the API server at its service's address.

        Raises:
            LabError: a command failed in the guest; the message is its output.
            MissingError: this machine lacks the CNI plug-ins.
        """
        machine, networks = self.node.machine, STATE / "cni/networks"
        loads = [f"insmod {self.path(one)}" for one in sorted(self.modules.glob("*.ko"))]
        plugins = find_plugins()
        copies = [f"cp {self.path(plugins / name)} {STATE}/cni/bin/" for name in PLUGINS]
        binds = [
            f"mkdir -p {place}; mount --bind {folder} {place}"
            for place, folder in USUAL_PLACES.items()
        ]
        address = f"ip address add {SERVICE_ADDRESS}/32 dev lo"
        done = f"grep -q ' {next(iter(USUAL_PLACES))} ' /proc/mounts"
        machine(f"{done} || {{\n" + "\n".join([*loads, *copies, *binds, address]) + "\n}")
        machine.put(networks / CONFIGURATION, json.dumps(bridge()).encode())
        if self._relay.pid() is None:
            self._relay.start()

    @property
    def _relay(self) -> GuestDaemon:
        """Passes on what comes to the service of the API server."""
        listen = Endpoint(address=SERVICE_ADDRESS, port=HTTPS)
        connect = Endpoint(address=GUEST_VIEW, port=self.node.plane.ports.apiserver)
        python = (sys.executable, "-m", "numapin_lab.node.relay", str(Route(listen, connect)))
        return GuestDaemon("relay", RELAY, ("chroot", HOST, *python), self.node.machine)

    def path(self, file: Path) -> Path:
        """A file of this machine, as the guest finds it."""
        return Path(HOST) / str(file).lstrip("/")

    def ctr(self, *arguments: str) -> str:
        """Run `ctr` in the namespace of Kubernetes; returns its output.

        Raises:
            LabError: it failed; the message is its output.
        """
        return self.node.machine(f"{CTR} {shlex.join(arguments)}", IMPORT_SECONDS)
