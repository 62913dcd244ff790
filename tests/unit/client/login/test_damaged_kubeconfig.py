"""No kubeconfig makes a program fail in a way that does not name the file."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_client.errors import LoginError
from numapin_client.login.kubeconfig import kubeconfig_login
from support.values.files.damaged import contents

SOUND: Any = {
    "kind": "Config",
    "current-context": "one",
    "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://host:6443"}}],
    "users": [{"name": "u", "user": {"username": "me", "password": "secret"}}],
}
NAMES = (
    *("kind", "current-context", "contexts", "clusters", "users", "name", "context", "cluster"),
    *("user", "server", "token", "tokenFile", "username", "password", "proxy-url", "as"),
    *("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    *("tls-server-name", "exec", "auth-provider", "namespace", "http://host", "one", "c", "u"),
)
YAML = st.sampled_from(
    [
        *(b"a: 2020-99-99", b"a: !!int ''", b"a: !!float x", b"a: !!binary '*'", b"? [1]\n: 2"),
        *(b"!!python/object:os.system {}", b"a: &a [*a]", b"*b", b"\t", b"--- 1\n--- 2", b"\x85"),
        *(b"a: !!timestamp x", b"{[1]: 2}", b"<<: 1", b"{{}: 1}", b"a: 0x", b"a: 1:99:99"),
    ]
)


@given(contents(SOUND, NAMES) | YAML)
def test_any_kubeconfig_is_a_login_or_an_error_that_names_it(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(content)
        try:
            said = kubeconfig_login(str(path)).server
        except LoginError as refused:
            said = str(refused)
    assert said.startswith(("https://", "http://")) or str(path) in said


@pytest.mark.parametrize("content", ["a: 2020-99-99", "a: !!int ''", "[" * 100_000])
def test_yaml_whose_values_cannot_be_made_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(LoginError, match=f"cannot read the kubeconfig {path}: "):
        kubeconfig_login(str(path))


def test_a_password_that_is_no_text_names_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "config"
    users = [{"name": "u", "user": {"username": "me", "password": "\ud800"}}]
    path.write_text(json.dumps(SOUND | {"users": users}))
    with pytest.raises(LoginError, match=r"users\[name=u\].*is not text"):
        kubeconfig_login(str(path))
