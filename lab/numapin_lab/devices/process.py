"""Device plug-in and DRA driver as processes on the node of a lab, which a test starts and ends."""

import sys
from dataclasses import dataclass

from numapin_daemon.atomic_file import replace
from numapin_lab.devices.devices import Device, dump
from numapin_lab.devices.dra_plugin import REGISTRY
from numapin_lab.node.kubelet import Kubelet
from numapin_lab.processes.daemons import Daemon, kill, wait_until

REGISTER_SECONDS = 120


@dataclass(frozen=True)
class PluginProcess:
    """The plug-in of one resource on the node of `kubelet`."""

    kubelet: Kubelet
    resource: str

    @property
    def daemon(self) -> Daemon:
        """The process, in the mount namespace of the kubelet."""
        lab = self.kubelet.plane.folder
        folder = lab / f"plugin-{self.resource.replace('/', '-')}"
        command = (sys.executable, "-m", "numapin_lab.devices", self.resource)
        inside = self.kubelet.runtime.mount_namespace.inside((*command, str(folder / "devices")))
        return Daemon("plugin", folder, inside, lab)

    def start(self, *devices: Device) -> None:
        """Offer these devices; returns when the Node has the healthy ones."""
        self.offer(*devices)
        self.daemon.start()
        healthy = sum(one.healthy for one in devices)
        wait_until(
            lambda: self.allocatable() == healthy,
            f"{healthy} {self.resource} on the node",
            REGISTER_SECONDS,
            self.daemon,
        )

    def offer(self, *devices: Device) -> None:
        """Offer these from now on."""
        file = self.daemon.folder / "devices"
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, dump(devices).encode())

    def kill(self) -> None:
        """End it with SIGKILL."""
        if (pid := self.daemon.pid()) is not None:
            kill(pid)

    def allocatable(self) -> int:
        """How many the Node says there are for pods."""
        node = self.kubelet.plane.api.get(f"/api/v1/nodes/{self.kubelet.node}")
        return int(node["status"].get("allocatable", {}).get(self.resource, 0))


@dataclass(frozen=True)
class DriverProcess:
    """A DRA driver on the node of `kubelet`; a test publishes its devices (see `slices`)."""

    kubelet: Kubelet
    driver: str

    @property
    def daemon(self) -> Daemon:
        """The process."""
        lab, registry = self.kubelet.plane.folder, self.kubelet.root / REGISTRY
        command = (sys.executable, "-m", "numapin_lab.devices", self.driver, "--dra")
        return Daemon("driver", lab / self.driver, (*command, f"--folder={registry}"), lab)

    def start(self) -> None:
        """Start it; returns when the kubelet has registered it."""
        self.daemon.start()
        wait_until(self._is_registered, "the DRA driver", REGISTER_SECONDS, self.daemon)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if (pid := self.daemon.pid()) is not None:
            kill(pid)

    def _is_registered(self) -> bool:
        return "plugin_registered: true" in self.daemon.log.read_text()
