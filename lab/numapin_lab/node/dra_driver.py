"""The DRA driver for CPUs (kubernetes-sigs/dra-driver-cpu), a neighbour of numapin on a node.

Its folders are constants: /var/lib/kubelet/plugins, /var/lib/kubelet/plugins_registry, /var/run/cdi
and /var/run/nri. In a mount namespace of its own they are those of the lab.
"""

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.node.kubelet import Kubelet
from numapin_lab.processes.daemons import Daemon, stop, wait_until

NAME = "dra.cpu"
READY_SECONDS = 120
STOP_SECONDS = 10.0
SLICES = "/apis/resource.k8s.io/v1/resourceslices"

DEVICE_CLASS: Mapping[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": NAME},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{NAME}"'}}]},
}

# The kubelet, in the lab's namespace, connects to the socket that the driver has registered.
SHARED = """set -eu
mkdir -p /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry "$1/plugins_registry"
mountpoint -q /var/lib/kubelet/plugins_registry ||
  mount --bind "$1/plugins_registry" /var/lib/kubelet/plugins_registry
"""
OWN = """set -eu
cdi=$1 nri=$2 run=$3; shift 3
mkdir -p "$run/cdi" "$run/nri"
: >>"$run/nri/nri.sock"
mount --bind "$run" "$run"
mount --bind "$cdi" "$run/cdi"
mount --bind "$nri" "$run/nri/nri.sock"
mount --rbind "$run" /run
exec "$@"
"""


@dataclass(frozen=True)
class DraDriver:
    """The driver on the node of `kubelet`; `program` is dracpu, `port` serves its probe.

    `options` say which CPUs it gives away, and how.
    """

    kubelet: Kubelet
    program: Path
    port: int
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Its log and pid, and what it has as /run."""
        return self.kubelet.plane.folder / "dra-driver"

    @property
    def daemon(self) -> Daemon:
        """The process."""
        kubelet, runtime = self.kubelet, self.kubelet.runtime
        inner = ("sh", "-c", OWN, "sh", str(runtime.cdi), str(runtime.nri_socket))
        command = (
            *("unshare", "--mount", "--propagation=private"),
            *(*inner, str(self.folder / "run"), str(self.program)),
            f"--kubeconfig={kubelet.plane.kubeconfig}",
            f"--hostname-override={kubelet.node}",
            f"--bind-address=127.0.0.1:{self.port}",
            *self.options,
        )
        inside = runtime.mount_namespace.inside(command)
        return Daemon("dra-driver", self.folder, inside, kubelet.plane.folder, ports=(self.port,))

    def start(self) -> None:
        """Start it; returns when the scheduler can give its CPUs away."""
        (self.folder / "run").mkdir(parents=True, exist_ok=True)
        namespace = self.kubelet.runtime.mount_namespace
        namespace.run_inside("sh", "-c", SHARED, "sh", str(self.kubelet.root))
        self.daemon.start()
        wait_until(self._offers, "the DRA driver to offer CPUs", READY_SECONDS, self.daemon)

    def stop(self) -> None:
        """End it."""
        if (pid := self.daemon.pid()) is not None:
            stop(pid, STOP_SECONDS)

    def _offers(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/healthz"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=5) as answer:
                healthy = bool(answer.status == 200)
        except OSError:
            return False
        slices = self.kubelet.plane.api.get(SLICES)["items"]
        return healthy and any(one["spec"]["driver"] == NAME for one in slices)
