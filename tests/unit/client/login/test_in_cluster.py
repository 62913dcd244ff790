"""The login of a pod, from what the kubelet gives it."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from numapin_client.errors import LoginError
from numapin_client.login.in_cluster import in_cluster_login

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (POD, "https://10.96.0.1:443"),
        (POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443"),
        ({"KUBERNETES_SERVICE_HOST": "api.local"}, "https://api.local:443"),
    ],
)
async def test_in_a_pod(mount: Path, environ: Mapping[str, str], expected: str) -> None:
    login = in_cluster_login(environ, mount)
    assert login.server == expected
    assert [await each.authorization() for each in login.credentials] == [None, "Bearer first"]
    assert login.tls is not None
    assert len(login.tls.get_ca_certs()) == 1


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_missing_mount_is_named(mount: Path, missing: str) -> None:
    (mount / missing).unlink()
    with pytest.raises(LoginError, match=f"{mount / missing} is missing"):
        in_cluster_login(POD, mount)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "KUBERNETES_SERVICE_HOST is not set"),
        (POD | {"KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:443"}, "not a port number"),
    ],
)
def test_a_pod_without_its_variables(mount: Path, environ: Mapping[str, str], message: str) -> None:
    with pytest.raises(LoginError, match=message):
        in_cluster_login(environ, mount)


async def test_without_a_thread_for_it_the_token_cannot_be_read(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the login is retried; any other would end the program."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    login = in_cluster_login(POD, mount)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(LoginError, match="can't start new thread"):
            await login.credentials[1].authorization()
