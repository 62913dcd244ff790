"""Where a login comes from, and how a mounted token is kept fresh."""

import subprocess
import sys
from pathlib import Path

import pytest

from numapin_client.errors import LoginError
from numapin_client.login.credentials import (
    REREAD_SECONDS,
    AuthorityFile,
    CertificateFiles,
    TokenFile,
    tls_context,
)
from numapin_client.login.find import find_login
from numapin_lab.controlplane.certificates import Authority, Identity

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def kubeconfig(path: Path, server: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
    )
    return str(path)


def test_the_kubeconfig_that_was_named_comes_first(tmp_path: Path) -> None:
    named = kubeconfig(tmp_path / "named", "https://named")
    environ = {
        "KUBECONFIG": kubeconfig(tmp_path / "environ", "https://environ"),
        "HOME": str(Path(kubeconfig(tmp_path / ".kube" / "config", "https://home")).parents[1]),
    }
    assert find_login(named, environ).server == "https://named"
    assert find_login(None, environ).server == "https://environ"
    assert find_login(None, {"HOME": environ["HOME"]}).server == "https://home"


def test_nothing_to_log_in_with(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match="name a kubeconfig"):
        find_login(None, {"HOME": str(tmp_path)})
    with pytest.raises(LoginError, match="no service account is mounted"):
        find_login(None, {"HOME": str(tmp_path)} | POD)


class Clock:
    """A clock that stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_mounted_token_is_read_again_each_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("first\n")
    credential = TokenFile(path, clock)
    assert await credential.authorization() == "Bearer first"
    path.write_text("second\n")
    assert await credential.authorization() == "Bearer first"
    clock.now += REREAD_SECONDS
    assert await credential.authorization() == "Bearer second"


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    credential = TokenFile(path, Clock())
    assert await credential.authorization() == "Bearer first"
    path.write_text("second")
    await credential.renew()
    assert await credential.authorization() == "Bearer second"


async def test_a_rotated_authority_is_trusted_as_well(mount: Path, tmp_path: Path) -> None:
    path, clock = mount / "ca.crt", Clock()
    tls = tls_context(path, "a test")
    credential = AuthorityFile(tls, path, clock)
    new = Authority(tmp_path / "new")
    new.create()
    path.write_bytes(new.certificate.read_bytes())
    assert await credential.authorization() is None  # type: ignore[func-returns-value]
    assert len(tls.get_ca_certs()) == 1
    clock.now += REREAD_SECONDS
    await credential.authorization()
    assert len(tls.get_ca_certs()) == 2
    path.unlink()
    clock.now += REREAD_SECONDS
    with pytest.raises(LoginError, match=f"authority {path}"):
        await credential.authorization()


async def test_a_replaced_client_certificate_is_shown(tmp_path: Path) -> None:
    authority, clock = Authority(tmp_path / "pki"), Clock()
    authority.create()
    authority.issue("me", Identity("me"))
    certificate, key = authority.folder / "me.crt", authority.folder / "me.key"
    credential = CertificateFiles(tls_context(None, "a test"), certificate, key, clock)
    await credential.authorization()
    certificate.write_text("half written")
    await credential.authorization()
    clock.now += REREAD_SECONDS
    with pytest.raises(LoginError, match=f"client certificate {certificate}"):
        await credential.authorization()


@pytest.mark.parametrize("unwanted", ["kubernetes", "kopf"])
def test_the_client_stays_small(unwanted: str, tmp_path: Path) -> None:
    """A plain kubeconfig must not bring in what only few need; 19 MiB, measured."""
    path = kubeconfig(tmp_path / "config", "https://h")
    code = f"""
import importlib, pkgutil, sys, numapin_client
for module in pkgutil.walk_packages(numapin_client.__path__, "numapin_client."):
    if module.name != "numapin_client.login.credential_providers":
        importlib.import_module(module.name)
from numapin_client.login.find import find_login
find_login({path!r}, {{}})
sys.exit({unwanted!r} in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
