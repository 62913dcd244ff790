"""Being known to a real API server: certificates, mounted tokens, plug-ins."""

import asyncio
import base64
import json
import sys
from pathlib import Path

import pytest
import yaml

from numapin_client import errors
from numapin_client.client import ApiClient, connect
from numapin_client.login.in_cluster import in_cluster_login
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Json, Key, Resource
from numapin_client.transport.connection import Request
from numapin_lab.controlplane.certificates import Identity
from numapin_lab.controlplane.servers import ControlPlane

VERSION = Request("GET", "/version")

REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


async def who_am_i(client: ApiClient) -> str:
    review = await client.create(REVIEWS, {"metadata": {}})
    return str(review["status"]["userInfo"]["username"])


def write(path: Path, plane: ControlPlane, user: Json, **cluster: object) -> str:
    trusted = {"server": plane.server, "certificate-authority": str(plane.ca)}
    content = {
        "clusters": [{"name": "c", "cluster": trusted | cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def certificate(plane: ControlPlane, user: str) -> tuple[Path, Path]:
    plane.authority.issue(user, Identity(user))
    folder = plane.authority.folder
    return folder / f"{user}.crt", folder / f"{user}.key"


@pytest.mark.parametrize("embedded", [True, False])
async def test_a_client_certificate(
    control_plane: ControlPlane, tmp_path: Path, embedded: bool
) -> None:
    crt, key = certificate(control_plane, "by-certificate")
    if embedded:
        user = {
            "client-certificate-data": base64.b64encode(crt.read_bytes()).decode(),
            "client-key-data": base64.b64encode(key.read_bytes()).decode(),
        }
    else:
        user = {"client-certificate": str(crt), "client-key": str(key)}
    login = kubeconfig_login(write(tmp_path / "kubeconfig", control_plane, user))
    async with connect(login) as client:
        assert await who_am_i(client) == "by-certificate"


async def test_a_server_with_another_name_is_refused(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    user = {"token": control_plane.admin_token}
    path = tmp_path / "kubeconfig"
    wrong = {"tls-server-name": "another.example"}
    async with connect(kubeconfig_login(write(path, control_plane, user, **wrong))) as client:
        with pytest.raises(errors.ConnectionFailedError, match="not trusted"):
            await client.connection.ask(VERSION)
    right = {"tls-server-name": "kubernetes.default.svc"}
    async with connect(kubeconfig_login(write(path, control_plane, user, **right))) as client:
        assert await who_am_i(client) == "admin"


async def test_a_cluster_without_tls_verification_works(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    insecure = {"certificate-authority": "", "insecure-skip-tls-verify": True}
    user = {"token": control_plane.admin_token}
    path = write(tmp_path / "kubeconfig", control_plane, user, **insecure)
    async with connect(kubeconfig_login(path)) as client:
        assert await who_am_i(client) == "admin"


def token_of(plane: ControlPlane, namespace: str, account: str) -> str:
    return plane.kubectl("create", "token", account, "-n", namespace).strip()


async def test_a_pod_follows_its_mounted_token(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """The second token is there before the first one is refused, as the kubelet sees to."""
    kubectl = control_plane.kubectl
    for account in ("first", "second"):
        kubectl("create", "serviceaccount", account, "-n", namespace)
    (tmp_path / "ca.crt").write_bytes(control_plane.ca.read_bytes())
    (tmp_path / "token").write_text(token_of(control_plane, namespace, "first"))
    environ = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(control_plane.ports.apiserver),
    }
    async with connect(in_cluster_login(environ, tmp_path)) as client:
        assert await who_am_i(client) == f"system:serviceaccount:{namespace}:first"
        (tmp_path / "token").write_text(token_of(control_plane, namespace, "second"))
        assert await who_am_i(client) == f"system:serviceaccount:{namespace}:first"
        kubectl("delete", "serviceaccount", "first", "-n", namespace)
        # The server remembers for ten seconds a token that it has verified.
        async with asyncio.timeout(120):
            name = ""
            while not name.endswith(":second"):
                await asyncio.sleep(0.1)
                name = await who_am_i(client)
        assert name == f"system:serviceaccount:{namespace}:second"


@pytest.mark.parametrize("kind", ["token", "certificate"])
async def test_a_plugin(control_plane: ControlPlane, tmp_path: Path, kind: str) -> None:
    if kind == "token":
        status, expected = {"token": control_plane.admin_token}, "admin"
    else:
        crt, key = certificate(control_plane, "by-plugin")
        status, expected = (
            {"clientCertificateData": crt.read_text(), "clientKeyData": key.read_text()},
            "by-plugin",
        )
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    program = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", "print(open('answer.json').read())"],
    }
    login = kubeconfig_login(write(tmp_path / "kubeconfig", control_plane, {"exec": program}))
    async with connect(login) as client:
        assert await who_am_i(client) == expected


async def test_a_forbidden_request_names_the_user(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    crt, key = certificate(control_plane, "powerless")
    user = {"client-certificate": str(crt), "client-key": str(key)}
    login = kubeconfig_login(write(tmp_path / "kubeconfig", control_plane, user))
    nodes = Resource("", "v1", "nodes", "Node", namespaced=False)
    async with connect(login) as client:
        with pytest.raises(errors.ForbiddenError, match='User "powerless" cannot get'):
            await client.get(nodes, Key("node-1"))
