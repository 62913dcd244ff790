"""The kubelet of one node, whose pods are in the cgroup of the lab."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.certificates import Identity
from numapin_lab.controlplane.servers import SERVICE_ADDRESS, ControlPlane
from numapin_lab.errors import MissingError
from numapin_lab.node.containerd import Runtime
from numapin_lab.processes.daemons import Daemon, wait_until

REGISTER_SECONDS = 300
READY_SECONDS = 300
# No server has this address; without one the kubelet sends an Event for every pod.
CLUSTER_DNS = "10.0.0.10"
DEFAULT_ROOT = "/var/lib/kubelet"

# Fields of KubeletConfiguration for any machine, and for folders of its own.
EVERYWHERE: Mapping[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "readOnlyPort": 0,
    "cgroupDriver": "cgroupfs",
    "enforceNodeAllocatable": [],
    "failCgroupV1": False,
    "failSwapOn": False,
    "resolvConf": "",
    "clusterDNS": [CLUSTER_DNS],
    "localStorageCapacityIsolation": False,
    "makeIPTablesUtilChains": False,
    "enableControllerAttachDetach": False,
    # The disk of a developer is often nearly full, and the pods of a lab need little of it.
    "evictionHard": {
        "memory.available": "50Mi",
        "nodefs.available": "1%",
        "imagefs.available": "1%",
    },
    "imageGCHighThresholdPercent": 100,
    "maxPods": 250,
    "nodeStatusUpdateFrequency": "2s",
}


@dataclass(frozen=True)
class KubeletPorts:
    """TCP ports: the kubelet's API on the node's address, /healthz on loopback."""

    api: int
    health: int


@dataclass(frozen=True)
class Kubelet:
    """A kubelet in `folder` that joins `plane` as `node` and runs pods with `runtime`.

    `settings` are fields of its KubeletConfiguration that come before the lab's own.
    """

    folder: Path
    node: str
    ports: KubeletPorts
    plane: ControlPlane
    runtime: Runtime
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """Its root folder, by default /var/lib/kubelet: cpu_manager_state, volumes of pods."""
        return self.folder / "root"

    @property
    def pod_resources_socket(self) -> Path:
        """Where it says which devices pods have."""
        return self.root / "pod-resources" / "kubelet.sock"

    @property
    def pod_logs(self) -> Path:
        """The logs of pods, by default /var/log/pods."""
        return self.folder / "pod-logs"

    @property
    def daemon(self) -> Daemon:
        """The kubelet process."""
        command = (
            str(self.plane.programs["kubelet"]),
            f"--config={self.folder / 'config.yaml'}",
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--root-dir={self.root if self.runtime.machine is None else DEFAULT_ROOT}",
            f"--cert-dir={self.folder / 'pki'}",
            f"--hostname-override={self.node}",
            f"--node-ip={node_address()}",
        )
        # A machine of its own has ports of its own.
        ports = () if self.runtime.machine else (self.ports.api, self.ports.health)
        inside = self.runtime.mount_namespace.inside(command)
        return Daemon("kubelet", self.folder, inside, self.folder.parent, ports=ports)

    def start(self) -> None:
        """Start it if it does not run; returns when its Node object exists."""
        self._write_files()
        if self.daemon.pid() is None:
            self.daemon.start()
        wait_until(self.registered, f"node {self.node}", REGISTER_SECONDS, self.daemon)

    def wait_ready(self) -> None:
        """Return when pods can run: the node is Ready and its not-ready taint is lifted."""
        what = f"node {self.node} to be Ready"
        wait_until(lambda: self.plane.node_ready(self.node), what, READY_SECONDS, self.daemon)

    def registered(self) -> bool:
        """Whether its Node object exists."""
        return self.plane.api.exists(f"/api/v1/nodes/{self.node}")

    def config(self) -> dict[str, Any]:
        """The content of config.yaml."""
        return {
            **EVERYWHERE,
            **access_fields(self.plane.authority.folder, self.plane.ca),
            "address": node_address(),
            "port": self.ports.api,
            "healthzPort": self.ports.health,
            "cgroupRoot": "/" if self.runtime.machine else self.runtime.cgroup.path,
            "containerRuntimeEndpoint": f"unix://{self.runtime.socket}",
            "podLogsDir": str(self.pod_logs),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            **self.settings,
        }

    def _write_files(self) -> None:
        for folder in (self.folder, self.root, self.pod_logs):
            folder.mkdir(parents=True, exist_ok=True)
        authority = self.plane.authority
        user = Identity(f"system:node:{self.node}", ("system:nodes",))
        certificate, key = authority.issue("kubelet", user)
        authority.issue("kubelet-server", Identity(self.node, hosts=(self.node, node_address())))
        kubeconfig.write(
            self.folder / "kubeconfig",
            f"https://{SERVICE_ADDRESS}" if self.runtime.machine else self.plane.server,
            self.plane.ca,
            {"client-certificate": str(certificate), "client-key": str(key)},
        )
        (self.folder / "config.yaml").write_text(yaml.safe_dump(self.config(), sort_keys=False))


def access_fields(pki: Path, ca: Path) -> dict[str, Any]:
    """Fields by which only clients that the API server authorizes have access.

    Args:
        pki: the folder of kubelet-server.crt and .key.
        ca: the certificate authority of clients.
    """
    return {
        "tlsCertFile": str(pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet-server.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
    }


def node_address() -> str:
    """The address from which this machine reaches others; nothing is sent.

    The kubelet refuses loopback.

    Raises:
        MissingError: there is no address other than loopback.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1 (RFC 5737)
            return str(probe.getsockname()[0])
        except OSError as error:
            raise MissingError(
                "the kubelet needs a network address other than loopback, and there is no route",
                "ip link add lab type dummy && ip address add 192.0.2.2/24 dev lab && "
                "ip link set lab up",
            ) from error
