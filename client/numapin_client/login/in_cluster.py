"""Log in as the service account that is mounted into a pod."""

from collections.abc import Mapping
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

from numapin_client.errors import LoginError
from numapin_client.login.credentials import AuthorityFile, Login, TokenFile, tls_context

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster_login(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_DIR) -> Login:
    """Log in as the service account of this pod.

    Args:
        environ: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` as the kubelet sets them.
        folder: where `token` and `ca.crt` are mounted.

    Raises:
        LoginError: the variables or the mount are missing.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise LoginError("not in a pod: KUBERNETES_SERVICE_HOST is not set; name a kubeconfig")
    if not port.isdecimal():
        raise LoginError(f"KUBERNETES_SERVICE_PORT is {port!r}, which is not a port number")
    token, authority = folder / "token", folder / "ca.crt"
    for path in (token, authority):
        if not path.is_file():
            raise LoginError(
                f"no service account is mounted: {path} is missing; set "
                "automountServiceAccountToken: true on the pod, or name a kubeconfig"
            )
    tls = tls_context(authority, str(authority))
    return Login(
        server=f"https://{_bracketed(host)}:{port}",
        origin=f"the service account in {folder}",
        credentials=(AuthorityFile(tls, authority), TokenFile(token)),
        tls=tls,
    )


def _bracketed(host: str) -> str:
    """Write a host as in a URL: IPv6 addresses in brackets."""
    try:
        return f"[{IPv6Address(host)}]"
    except ValueError:
        return host
