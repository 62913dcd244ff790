"""How the API server and an isolated node reach each other: two relays and unix sockets."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.controlplane.servers import SERVICE_ADDRESS
from numapin_lab.node.kubelet import node_address
from numapin_lab.node.mount_namespace import MountNamespace
from numapin_lab.node.relay import Endpoint, Route
from numapin_lab.processes.daemons import Daemon, wait_until

START_SECONDS = 120
HTTPS = 443


@dataclass(frozen=True)
class NodeNetwork:
    """The two relays of one lab: the first part of a connection's way, and the second.

    In the node's network namespace the API server has its service's address, as in any cluster.
    The kubelet has there the address of the machine, so that the API server finds it at the address
    of its Node. `apiserver` and `kubelet` are their ports.
    """

    lab: Path
    run: Path
    namespace: MountNamespace
    apiserver: int
    kubelet: int

    @property
    def outside(self) -> Daemon:
        """The relay in the network of the machine."""
        command = _relay(
            Route(self._apiserver, Endpoint(address="127.0.0.1", port=self.apiserver)),
            Route(self._node, self._kubelet),
        )
        return Daemon("relay", self.lab / "relay", command, self.lab, ports=(self.kubelet,))

    @property
    def inside(self) -> Daemon:
        """The relay in the network of the node."""
        command = _relay(
            Route(Endpoint(address=SERVICE_ADDRESS, port=HTTPS), self._apiserver),
            Route(self._kubelet, self._node),
        )
        folder = self.lab / "node-relay"
        return Daemon("node-relay", folder, self.namespace.inside(command), self.lab)

    def start(self) -> None:
        """Start what does not run; returns when both listen.

        Raises:
            LabError: one has ended; the message holds the end of its log.
        """
        for daemon, socket in ((self.outside, self._apiserver), (self.inside, self._kubelet)):
            if daemon.pid() is not None:
                continue
            path = Path(str(socket))
            path.unlink(missing_ok=True)
            daemon.start()
            wait_until(path.exists, f"the {daemon.name} to listen", START_SECONDS, daemon)

    @property
    def _apiserver(self) -> Endpoint:
        return Endpoint(path=str(self.run / "apiserver.sock"))

    @property
    def _kubelet(self) -> Endpoint:
        return Endpoint(path=str(self.run / "kubelet.sock"))

    @property
    def _node(self) -> Endpoint:
        return Endpoint(address=node_address(), port=self.kubelet)


def _relay(*routes: Route) -> tuple[str, ...]:
    words: Sequence[str] = [str(route) for route in routes]
    return (sys.executable, "-m", "numapin_lab.node.relay", *words)
