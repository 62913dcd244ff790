"""Kubeconfigs: what each kind of entry becomes, and what is said of broken ones."""

import base64
import ssl
from pathlib import Path

import pytest
import yaml

from numapin_client.errors import LoginError
from numapin_client.login.credentials import Login
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Json
from numapin_lab.controlplane.certificates import Authority, Identity


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("pki"))
    made.create()
    made.issue("admin", Identity("admin"))
    return made


def write(path: Path, user: Json | None = None, cluster: Json | None = None) -> str:
    content = {
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://10.0.0.1:6443/"}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def header(login: Login) -> str | None:
    for credential in login.credentials:
        if found := await credential.authorization():
            return found
    return None


async def test_no_user_is_anonymous(tmp_path: Path) -> None:
    login = kubeconfig_login(write(tmp_path / "config"))
    assert login.server == "https://10.0.0.1:6443"
    assert await header(login) is None
    assert login.tls is not None
    assert login.tls.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({"token": "abc"}, "Bearer abc", id="token"),
        pytest.param({"tokenFile": "token"}, "Bearer from-file", id="token file, relative"),
        pytest.param({"token": "abc", "tokenFile": "token"}, "Bearer from-file", id="file wins"),
        pytest.param({"username": "me", "password": "it"}, "Basic bWU6aXQ=", id="password"),
    ],
)
async def test_headers(tmp_path: Path, user: Json, expected: str) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert await header(kubeconfig_login(write(tmp_path / "config", user))) == expected


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    login = kubeconfig_login(write(tmp_path / "c", cluster={"server": "http://127.0.0.1:8001"}))
    assert login.tls is None


def test_cluster_settings(tmp_path: Path) -> None:
    cluster = {
        "server": "https://h",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
        "insecure-skip-tls-verify": True,
    }
    login = kubeconfig_login(write(tmp_path / "c", cluster=cluster))
    assert login.tls is not None
    assert login.tls.verify_mode is ssl.CERT_NONE
    assert (login.tls_server_name, login.proxy) == ("kubernetes", "http://proxy:3128")


@pytest.mark.parametrize("embedded", [True, False])
def test_authority_and_client_certificate(
    tmp_path: Path, authority: Authority, embedded: bool
) -> None:
    folder = authority.certificate.parent
    files = {
        "client-certificate": folder / "admin.crt",
        "client-key": folder / "admin.key",
    }
    if embedded:
        user = {f"{name}-data": _base64(path) for name, path in files.items()}
        ca = {"certificate-authority-data": _base64(authority.certificate)}
    else:
        user = {name: str(path) for name, path in files.items()}
        ca = {"certificate-authority": str(authority.certificate)}
    login = kubeconfig_login(write(tmp_path / "c", user, {"server": "https://h", **ca}))
    assert login.tls is not None
    assert len(login.tls.get_ca_certs()) == 1
    assert len(login.credentials) == (0 if embedded else 2)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def test_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "token").write_text("of-one")
    one = write(tmp_path / "one" / "config", {"tokenFile": "token"})
    two = write(tmp_path / "two", {"token": "of-two"})
    assert await header(kubeconfig_login(f"{tmp_path}/absent:{one}:{two}")) == "Bearer of-one"
    assert await header(kubeconfig_login(f"{two}:{one}")) == "Bearer of-two"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no mapping"),
        ("a: [", "cannot read the kubeconfig"),
        ("kind: Pod", "its kind is 'Pod'"),
        ("clusters: {a: b}\ncurrent-context: x\ncontexts: 5", "contexts is not a list"),
        ("{}", r"current-context is not set.*\(it has: none\)"),
        ("contexts: [{name: a, context: {}}]", r"\(it has: a\)"),
        ("contexts: [{name: a, context: {}}]\ncurrent-context: b", r"no context is named 'b'"),
        ("contexts: [{name: a}]\ncurrent-context: a", r"contexts\[name=a\] has no context"),
        (
            "contexts: [{name: a, context: {cluster: c}}]\ncurrent-context: a",
            r"no cluster is named 'c' \(it has: none\)",
        ),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(LoginError, match=message) as caught:
        kubeconfig_login(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({}, {"server": "10.0.0.1"}, r"clusters\[name=c\]\.server is '10\.0\.0\.1'; write it as"),
        ({}, {"server": "https://h", "proxy-url": "socks5://p"}, "only HTTP proxies"),
        ({}, {"server": "https://h", "certificate-authority": "no.crt"}, "authority.*no.crt.*No"),
        ({}, {"server": "https://h", "certificate-authority-data": "%"}, "is not base64"),
        ({}, {"server": "https://h", "certificate-authority-data": "YWJj"}, "cannot read the cert"),
        (
            {},
            {
                "server": "https://h",
                "certificate-authority-data": "YWJj",
                "insecure-skip-tls-verify": True,
            },
            "exclude each other",
        ),
        ({"token": 5}, {}, r"users\[name=u\]\.token is not text"),
        ({"as": "root"}, {}, r"users\[name=u\]\.as: impersonation"),
        ({"client-certificate": "a.crt"}, {}, "no client-key"),
        ({"client-certificate": "a.crt", "client-key": "a.key"}, {}, "client certificate.*a.crt"),
        (
            {"client-certificate-data": "YWJj", "client-key-data": "YWJj"},
            {},
            r"users\[name=u\]: cannot use the client certificate",
        ),
        (
            {"client-certificate-data": "YWJj", "client-key": "nokey"},
            {},
            r"users\[name=u\]: cannot read .*nokey",
        ),
    ],
)
def test_broken_entries(tmp_path: Path, user: Json, cluster: Json, message: str) -> None:
    with pytest.raises(LoginError, match=message) as caught:
        kubeconfig_login(write(tmp_path / "kubeconfig", user, cluster or None))
    assert str(tmp_path) in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match=r"no kubeconfig at .*absent"):
        kubeconfig_login(str(tmp_path / "absent"))


async def test_an_unreadable_token_file_names_it(tmp_path: Path) -> None:
    login = kubeconfig_login(write(tmp_path / "config", {"tokenFile": "token"}))
    with pytest.raises(LoginError, match=f"{tmp_path}/token"):
        await header(login)
    (tmp_path / "token").write_text("\n")
    with pytest.raises(LoginError, match="is empty"):
        await header(login)
