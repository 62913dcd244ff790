"""Read kubeconfig files: where the server is, whom to trust, and who we are.

Plain entries (tokens, certificates, passwords) are read here: the `kubernetes` package costs about
19 MiB of memory. What runs programs or asks identity providers is left to that package.
Source: client-go `clientcmd` (merging, precedence), `clientcmd/api/v1` (fields).
"""

import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from numapin_client.errors import LoginError
from numapin_client.login.credentials import (
    AuthorityFile,
    CertificateFiles,
    Credential,
    FixedCredential,
    Login,
    TokenFile,
    load_client_certificate_data,
    tls_context,
)

_SURROGATE = re.compile("[\ud800-\udfff]")
"""A half of a character, which an escape in YAML or JSON can name and nothing can send."""

_NO_VALUE = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""What the library raises for a value that its tag cannot have, such as a 99th month."""


@dataclass(frozen=True)
class Entry:
    """One named cluster, user or context, and the file that it stands in."""

    path: Path
    place: str
    """Such as `/root/.kube/config: users[name=admin]`."""
    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Give a text field, empty when it is not set.

        Raises:
            LoginError: it is not text.
        """
        value = self.values.get(name) or ""
        if not isinstance(value, str) or _SURROGATE.search(value):
            raise LoginError(f"{self.place}.{name} is not text")
        return value

    def data(self, name: str) -> bytes | None:
        """Give a base64 field, decoded.

        Raises:
            LoginError: it is not base64.
        """
        try:
            return base64.b64decode(self.text(name), validate=True) or None
        except (binascii.Error, ValueError) as error:
            raise LoginError(f"{self.place}.{name} is not base64: {error}") from error

    def file(self, name: str) -> Path | None:
        """Give a path field; a relative one starts at the kubeconfig's folder."""
        text = self.text(name)
        return self.path.parent / text if text else None


def kubeconfig_login(paths: str, context: str = "") -> Login:
    """Log in as a context of a kubeconfig says.

    Args:
        paths: one path or several joined by `:`; of entries with the same name the first wins,
            files that do not exist are passed over as long as one does.
        context: the name of the context; empty for the current one.

    Raises:
        LoginError: a file or an entry is missing, broken or beyond us; says which and the remedy.
    """
    files = _read_files(paths)
    current = (str(v) for _, c in files if (v := c.get("current-context")))
    name = context or next(current, "")
    if not name:
        known = ", ".join(_names(files, "contexts")) or "none"
        raise LoginError(
            f"{paths}: current-context is not set; run `kubectl config use-context NAME` "
            f"(it has: {known})"
        )
    chosen = _find(files, "contexts", "context", name)
    cluster = _find(files, "clusters", "cluster", chosen.text("cluster"))
    user_name = chosen.text("user")
    user = _find(files, "users", "user", user_name) if user_name else None
    login = _login(paths, name, cluster, user)
    return replace(login, namespace=chosen.text("namespace"))


def _login(paths: str, context: str, cluster: Entry, user: Entry | None) -> Login:
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise LoginError(f"{cluster.place}.server is {server!r}; write it as https://HOST:PORT")
    proxy = cluster.text("proxy-url")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise LoginError(f"{cluster.place}.proxy-url is {proxy!r}; only HTTP proxies are supported")
    tls = _tls(cluster) if server.startswith("https://") else None
    return Login(
        server=server,
        origin=f"{paths} (context {context})",
        credentials=_authority(cluster, tls)
        + _credentials(user, tls)
        + _plugin(user, cluster, tls, (paths, context)),
        tls=tls,
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy=proxy or None,
    )


def _tls(cluster: Entry) -> ssl.SSLContext:
    authority = cluster.data("certificate-authority-data") or cluster.file("certificate-authority")
    insecure = bool(cluster.values.get("insecure-skip-tls-verify"))
    if insecure and authority:
        raise LoginError(
            f"{cluster.place}: insecure-skip-tls-verify and a certificate authority exclude each "
            "other; remove one"
        )
    place = f"{cluster.place}.certificate-authority"
    if isinstance(authority, Path):
        place = f"{place} {authority}"
    return tls_context(authority, place, insecure=insecure)


def _authority(cluster: Entry, tls: ssl.SSLContext | None) -> tuple[Credential, ...]:
    """Follow changes of the bundle if it is a file."""
    path = cluster.file("certificate-authority")
    if tls is None or path is None or cluster.text("certificate-authority-data"):
        return ()
    return (AuthorityFile(tls, path),)


def _credentials(user: Entry | None, tls: ssl.SSLContext | None) -> tuple[Credential, ...]:
    """The credentials of a user entry, in the order in which client-go prefers them."""
    if user is None:
        return ()
    for field in ("as", "as-uid", "as-groups", "as-user-extra"):
        if user.values.get(field):
            raise LoginError(f"{user.place}.{field}: impersonation is not supported; remove it")
    found: list[Credential] = []
    if tls is not None:
        found += _client_certificate(user, tls)
    token_file = user.file("tokenFile")
    if token_file:
        found.append(TokenFile(token_file))
    elif token := user.text("token"):
        found.append(FixedCredential(f"Bearer {token.strip()}"))
    elif user.text("username"):
        pair = f"{user.text('username')}:{user.text('password')}".encode()
        found.append(FixedCredential(f"Basic {base64.b64encode(pair).decode()}"))
    return tuple(found)


def _plugin(
    user: Entry | None, cluster: Entry, tls: ssl.SSLContext | None, source: tuple[str, str]
) -> tuple[Credential, ...]:
    """The exec plug-in or auth provider; `source` is the paths and the context."""
    if user is None or not (user.values.get("exec") or user.values.get("auth-provider")):
        return ()
    try:
        from numapin_client.login import credential_providers  # noqa: PLC0415 (19 MiB that few need)
    except ImportError as error:
        raise LoginError(
            f"{user.place}: exec and auth-provider need the Python package `kubernetes`: "
            "pip install 'numapin[login]', or use a kubeconfig with a token or a client certificate"
        ) from error
    if entry := user.values.get("exec"):
        location = f"{user.place}.exec"
        plugin = credential_providers.ExecPlugin(location, entry, cluster.values, user.path.parent)
        return (credential_providers.ExecCredential(plugin, tls),)
    return (credential_providers.AuthProviderCredential(f"{user.place}.auth-provider", *source),)


def _client_certificate(user: Entry, tls: ssl.SSLContext) -> list[Credential]:
    certificate_data, key_data = user.data("client-certificate-data"), user.data("client-key-data")
    certificate, key = user.file("client-certificate"), user.file("client-key")
    if not (certificate_data or certificate):
        return []
    if not (key_data or key):
        raise LoginError(f"{user.place} has a client certificate but no client-key")
    if certificate and key and not (certificate_data or key_data):
        return [CertificateFiles(tls, certificate, key)]
    load_client_certificate_data(
        tls,
        certificate_data or _read_bytes(certificate, user),
        key_data or _read_bytes(key, user),
        user.place,
    )
    return []


def _read_bytes(path: Path | None, entry: Entry) -> bytes:
    assert path is not None
    try:
        return path.read_bytes()
    except OSError as error:
        raise LoginError(f"{entry.place}: cannot read {path}: {error}") from error


def _read_files(paths: str) -> list[tuple[Path, Mapping[str, Any]]]:
    wanted = [Path(path).expanduser() for path in paths.split(":") if path]
    files = [(path, _read_yaml(path)) for path in wanted if path.exists()]
    if not files:
        raise LoginError(
            f"no kubeconfig at {paths}; name one that exists, or unset KUBECONFIG to use the "
            "default one"
        )
    return files


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, *_NO_VALUE) as error:
        raise LoginError(f"cannot read the kubeconfig {path}: {error}") from error
    if not isinstance(content, dict):
        raise LoginError(f"{path} is not a kubeconfig: it holds no mapping of fields")
    if content.get("kind", "Config") != "Config":
        raise LoginError(f"{path} is not a kubeconfig: its kind is {content['kind']!r}, not Config")
    return content


def _entries(files: list[tuple[Path, Mapping[str, Any]]], plural: str) -> list[tuple[Path, Any]]:
    found = []
    for path, content in files:
        entries = content.get(plural) or []
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise LoginError(f"{path}: {plural} is not a list of named entries")
        found += [(path, each) for each in entries]
    return found


def _names(files: list[tuple[Path, Mapping[str, Any]]], plural: str) -> list[str]:
    return [str(each.get("name")) for _, each in _entries(files, plural)]


def _find(
    files: list[tuple[Path, Mapping[str, Any]]], plural: str, singular: str, name: str
) -> Entry:
    for path, each in _entries(files, plural):
        if each.get("name") == name:
            place = f"{path}: {plural}[name={name}]"
            values = each.get(singular)
            if not isinstance(values, dict):
                raise LoginError(f"{place} has no {singular}")
            return Entry(path, place, values)
    where = ":".join(str(path) for path, _ in files)
    known = ", ".join(_names(files, plural)) or "none"
    raise LoginError(f"{where}: no {singular} is named {name!r} (it has: {known})")
