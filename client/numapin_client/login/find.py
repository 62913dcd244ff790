"""Find the API server: a kubeconfig, or the service account mounted into a pod."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from numapin_client.errors import LoginError
from numapin_client.login.credentials import Login
from numapin_client.login.in_cluster import in_cluster_login
from numapin_client.login.proxies import proxy_for


def find_login(kubeconfig: str | None, environ: Mapping[str, str], context: str = "") -> Login:
    """Choose how to log in, in the order that kubectl and client-go follow.

    1. `kubeconfig`, if given (one or more paths, joined by `:`),
    2. the files named by `KUBECONFIG` in `environ`,
    3. the mounted service account, if `KUBERNETES_SERVICE_HOST` is in `environ`,
    4. `~/.kube/config`.

    If the kubeconfig names no proxy, HTTPS_PROXY, HTTP_PROXY and NO_PROXY in `environ` apply.
    Reads a few small files, which blocks. A `context` is looked for in the kubeconfig, and is an
    error without one; empty for the current one.

    Raises:
        LoginError: none of these exists, or the first one that does is unusable.
    """
    login = _find(kubeconfig, environ, context)
    return login if login.proxy else replace(login, proxy=proxy_for(login.server, environ))


def _find(kubeconfig: str | None, environ: Mapping[str, str], context: str) -> Login:
    paths = kubeconfig or environ.get("KUBECONFIG")
    if paths:
        return _kubeconfig_login(paths, context)
    if environ.get("KUBERNETES_SERVICE_HOST") and not context:
        return in_cluster_login(environ)
    default = Path(environ.get("HOME", "/root"), ".kube", "config")
    if default.exists():
        return _kubeconfig_login(str(default), context)
    raise LoginError(
        f"no API server to talk to: no kubeconfig was named, KUBECONFIG is not set, {default} "
        "does not exist, and this is not a pod (KUBERNETES_SERVICE_HOST is not set); name a "
        "kubeconfig"
    )


def _kubeconfig_login(paths: str, context: str) -> Login:
    from numapin_client.login.kubeconfig import kubeconfig_login  # noqa: PLC0415 (YAML: none in a pod)

    return kubeconfig_login(paths, context)
