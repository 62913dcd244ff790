"""Log in as a service account, with the rights of its pods and no others."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.servers import ControlPlane

LIFETIME_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class ServiceAccount:
    """An account, and the node that its token is bound to (None: not bound)."""

    namespace: str
    name: str
    node: str | None = None


def request_token(plane: ControlPlane, account: ServiceAccount) -> str:
    """A token of this account; `kubectl create token` of 1.30 cannot bind one to a Node.

    Raises:
        AnswerError: the account or the node does not exist.
    """
    spec: dict[str, Any] = {"expirationSeconds": LIFETIME_SECONDS}
    if account.node is not None:
        node = plane.api.get(f"/api/v1/nodes/{account.node}")
        reference = {"apiVersion": "v1", "kind": "Node", "name": account.node}
        spec["boundObjectRef"] = {**reference, "uid": node["metadata"]["uid"]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    token: str = plane.api.request("POST", path, request)["status"]["token"]
    return token


def log_in(plane: ControlPlane, account: ServiceAccount, folder: Path) -> Path:
    """Request a token, and write it with a kubeconfig that refers to it; returns the kubeconfig.

    A second call renews the token in the same file.

    Raises:
        AnswerError: the account or the node does not exist.
    """
    text = request_token(plane, account)
    folder.mkdir(parents=True, exist_ok=True)
    partial, token = folder / "token.partial", folder / "token"
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(token)
    return kubeconfig.write(
        folder / "kubeconfig", plane.server, plane.ca, {"tokenFile": str(token)}
    )
