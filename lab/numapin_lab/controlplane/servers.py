"""etcd and kube-apiserver on loopback."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.components.catalog import COMPONENTS
from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.api import AnswerError, ApiServer
from numapin_lab.controlplane.certificates import Authority, Identity, write_key
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.processes.daemons import Daemon, stop, wait_until

ETCD_SECONDS = 300
APISERVER_SECONDS = 300
# With open watches a graceful end takes many seconds, and a lab needs none.
STOP_SECONDS = 1.0
SERVICE_RANGE = "10.0.0.0/24"
SERVICE_ADDRESS = "10.0.0.1"
GUEST_VIEW = "10.0.2.2"  # the host's loopback, seen from a virtual machine
# The address that a virtual node uses; QEMU forwards it to a port of the host.
GUEST_SERVER, GUEST_PORT = "10.0.2.100", 6443


@dataclass(frozen=True)
class ControlPlanePorts:
    """TCP ports on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int


@dataclass(frozen=True)
class ControlPlane:
    """A control plane in a folder.

    `programs`: where etcd, kube-apiserver and kubectl are. `flags`: more flags of kube-apiserver.
    """

    folder: Path
    ports: ControlPlanePorts
    programs: Mapping[str, Path]
    host: str = "127.0.0.1"
    flags: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://{self.host}:{self.ports.apiserver}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def authority(self) -> Authority:
        """Signs the certificates of every part."""
        return Authority(self.folder / "pki")

    @property
    def ca(self) -> Path:
        """The certificate that clients trust."""
        return self.authority.certificate

    @property
    def admin_token(self) -> str:
        """The administrator's bearer token."""
        return (self.folder / "pki" / "admin.token").read_text().strip()

    @property
    def api(self) -> ApiServer:
        """The administrator's client."""
        return ApiServer(self.server, self.ca, self.admin_token)

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's kubectl."""
        return Kubectl(self.programs["kubectl"], self.kubeconfig)

    @property
    def etcd(self) -> Daemon:
        """The store."""
        url, peer = (f"http://127.0.0.1:{port}" for port in (self.ports.etcd, self.ports.etcd_peer))
        folder = self.folder / "etcd"
        command = (
            str(self.programs["etcd"]),
            f"--data-dir={folder / 'data'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # a lab's data need not outlive the machine
        )
        ports = (self.ports.etcd, self.ports.etcd_peer)
        return Daemon("etcd", folder, command, self.folder, ports=ports)

    @property
    def apiserver(self) -> Daemon:
        """The API server."""
        pki = self.folder / "pki"
        folder = self.folder / "kube-apiserver"
        command = (
            str(self.programs["kube-apiserver"]),
            f"--etcd-servers=http://127.0.0.1:{self.ports.etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports.apiserver}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # which would refuse a loopback address
            f"--cert-dir={folder}",
            f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
            f"--client-ca-file={self.ca}",
            f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'kubelet-client.key'}",
            f"--kubelet-certificate-authority={self.ca}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--token-auth-file={pki / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'service-accounts.key'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            *_gates(),
            *self.flags,
        )
        ports = (self.ports.apiserver,)
        return Daemon("kube-apiserver", folder, command, self.folder, ports=ports)

    def start(self) -> None:
        """Start the parts that do not run; returns when the API server is ready.

        Raises:
            LabError: a part ended or did not become ready; the message holds the end of its log.
        """
        self._write_files()
        if self.etcd.pid() is None:
            self.etcd.start()
        if self.apiserver.pid() is None:
            # It waits for etcd for a while, so both may start at the same time.
            self.apiserver.start()
        wait_until(self.api.ready, "the API server", APISERVER_SECONDS, self.apiserver)
        wait_until(self._default_account, "the default service account", ETCD_SECONDS)

    def node_ready(self, node: str) -> bool:
        """Whether a node is Ready and has no taint, such as the one of a kubelet that has ended."""
        try:
            found = self.api.get(f"/api/v1/nodes/{node}")
        except (AnswerError, OSError):
            return False
        conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        return conditions.get("Ready") == "True" and not found["spec"].get("taints")

    def stop(self) -> None:
        """End both parts; the folder stays."""
        for daemon in (self.apiserver, self.etcd):
            pid = daemon.pid()
            if pid is not None:
                stop(pid, STOP_SECONDS)

    def _write_files(self) -> None:
        pki = self.authority
        pki.create()
        names = ("localhost", "kubernetes.default.svc")
        hosts = ("127.0.0.1", *names, SERVICE_ADDRESS, GUEST_VIEW, GUEST_SERVER)
        pki.issue("kube-apiserver", Identity("kube-apiserver", hosts=hosts))
        pki.issue("kubelet-client", Identity("kube-apiserver", ("system:masters",)))
        if not (pki.folder / "service-accounts.key").exists():
            write_key(pki.folder / "service-accounts.key")
        token = pki.folder / "admin.token"
        if not token.exists():
            token.touch(mode=0o600)
            token.write_text(secrets.token_urlsafe(24) + "\n")
        tokens = pki.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.admin_token},admin,admin,"system:masters"\n')
        self.write_kubeconfig()

    def write_kubeconfig(self) -> None:
        """Write the kubeconfig of the administrator, with `host` as server."""
        kubeconfig.write(self.kubeconfig, self.server, self.ca, {"token": self.admin_token})

    def _default_account(self) -> bool:
        """Create the account that every pod needs, once its namespace exists."""
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        try:
            self.api.create("/api/v1/namespaces/default/serviceaccounts", body)
        except AnswerError:
            return False
        return True


def _gates() -> tuple[str, ...]:
    """What a release still leaves off, and the logins of enforcers outside of pods need.

    Source: KEP-4193; tokens that are bound to a Node are on by default since Kubernetes 1.31.
    """
    if COMPONENTS["kube-apiserver"].pinned()[:2] >= (1, 31):
        return ()
    return ("--feature-gates=ServiceAccountTokenNodeBinding=true",)
