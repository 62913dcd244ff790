"""Kube-router, which enforces the NetworkPolicies of a node's pods with iptables and ipset.

The kernel must have IP_SET, NETFILTER_XT_SET and BRIDGE_NETFILTER. Of kube-router only the firewall
runs: it is a process of the node's network namespace, so that nothing of the machine changes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.controlplane.servers import SERVICE_ADDRESS
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.processes.daemons import Daemon, stop

STOP_SECONDS: Final = 10.0
SERVICES: Final = f"{SERVICE_ADDRESS}/24"
REMOVAL: Final = (
    ("iptables", "--flush"),
    ("iptables", "--delete-chain"),
    ("ipset", "destroy"),
)
"""What removes its rules: it leaves them when it ends."""


@dataclass(frozen=True)
class KubeRouter:
    """Kube-router on the node of `cluster`; `program` is its binary."""

    cluster: InstalledCluster
    program: Path

    @property
    def daemon(self) -> Daemon:
        """The process."""
        cluster = self.cluster
        command = (
            *(str(self.program), "--run-firewall", "--run-router=false"),
            *("--run-service-proxy=false", "--health-port=0"),
            f"--kubeconfig={cluster.plane.kubeconfig}",
            f"--master=https://{SERVICE_ADDRESS}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--hostname-override={cluster.state.node}",
        )
        folder = cluster.folder / "kube-router"
        inside = cluster.machine.inside(command)
        return Daemon("kube-router", folder, inside, cluster.folder, {"PATH": SEARCH_PATH})

    def start(self) -> None:
        """Start it if it does not run; the policies are in force some seconds later."""
        if self.daemon.pid() is None:
            self.daemon.start()

    def stop(self) -> None:
        """End it, and remove its rules."""
        if (pid := self.daemon.pid()) is not None:
            stop(pid, STOP_SECONDS)
            for command in REMOVAL:
                self.cluster.machine.run_inside(*command)
