"""Credentials for the API server, and certificates to verify it."""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, TypeVar

from numapin_client.errors import LoginError

REREAD_SECONDS: Final = 60.0
"""How long a credential from a file is used before the file is read again.

Source: client-go `transport.NewCachedFileTokenSource`, period 1 minute.
"""

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Call a blocking function in a thread.

    Raises:
        LoginError: no thread can be started, as at the limit of a pod's processes.
    """
    try:
        return await asyncio.to_thread(function)
    except RuntimeError as error:
        raise LoginError(f"cannot read a credential: {error}; raise pids.max") from error


class Credential(Protocol):
    """A proof of identity; it may change while the process runs."""

    async def authorization(self) -> str | None:
        """The Authorization header to send, or None if the proof is a client certificate.

        Raises:
            LoginError: the credential is not available.
        """

    async def renew(self) -> None:
        """Discard the cached credential, which the server did not accept."""


@dataclass(frozen=True)
class Login:
    """The address of an API server, and the credentials for it.

    Attributes:
        server: URL without a trailing slash, such as `https://10.0.0.1:443`.
        origin: where this was read from, for error messages.
        credentials: tried in order until one has a header; if empty, requests are anonymous.
        tls: None for plain HTTP.
        tls_server_name: the name in the server's certificate if it is not the URL's host.
        proxy: URL of an HTTP proxy, or None.
        namespace: that of the kubeconfig's context; empty if it names none.
    """

    server: str
    origin: str
    credentials: tuple[Credential, ...] = ()
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str | None = None
    proxy: str | None = None
    namespace: str = ""


@dataclass(frozen=True)
class FixedCredential:
    """A header that never changes."""

    header: str = field(repr=False)

    async def authorization(self) -> str:
        """The header."""
        return self.header

    async def renew(self) -> None:
        """Do nothing: there is no other one."""


class TokenFile:
    """A bearer token in a file that is replaced from time to time, as by the kubelet for pods."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._header: str | None = None
        self._read_at = 0.0

    async def authorization(self) -> str:
        """The token, read at most a minute ago."""
        if self._header is None or self._clock() - self._read_at >= REREAD_SECONDS:
            self._header = await in_thread(self._read)
            self._read_at = self._clock()
        return self._header

    async def renew(self) -> None:
        """Read the file again at the next request."""
        self._header = None

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LoginError(f"cannot read the token file {self._path}: {error}") from error
        if not token:
            raise LoginError(f"the token file {self._path} is empty")
        return f"Bearer {token}"


class AuthorityFile:
    """A CA bundle in a file that may be replaced, as when a cluster's CA is rotated.

    Earlier contents stay trusted until the process ends.
    """

    def __init__(
        self, tls: ssl.SSLContext, path: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Args: `tls` already trusts the current bundle."""
        self._tls, self._path, self._clock = tls, path, clock
        self._stamp = path.stat().st_mtime_ns
        self._read_at = clock()

    async def authorization(self) -> None:
        """None; makes new connections trust the current bundle."""
        if self._clock() - self._read_at >= REREAD_SECONDS:
            await in_thread(self._load)
            self._read_at = self._clock()

    async def renew(self) -> None:
        """Do nothing: a server that refuses a credential is trusted already."""

    def _load(self) -> None:
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp != self._stamp:
                self._tls.load_verify_locations(self._path)
                self._stamp = stamp
        except OSError as error:  # ssl.SSLError is one
            raise LoginError(
                f"cannot read the certificate authority {self._path}: {error}"
            ) from error


class CertificateFiles:
    """A client certificate in files that may be replaced, such as the kubelet's."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        certificate: Path,
        key: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the certificate.

        Raises:
            LoginError: it cannot be read, or the key does not match.
        """
        self._tls, self._certificate, self._key, self._clock = tls, certificate, key, clock
        self._stamp: tuple[int, int] | None = None
        self._load()
        self._read_at = self._clock()

    async def authorization(self) -> None:
        """None; makes new connections present the current certificate."""
        if self._clock() - self._read_at >= REREAD_SECONDS:
            await in_thread(self._load)
            self._read_at = self._clock()

    async def renew(self) -> None:
        """Read the files again at the next request."""
        self._read_at -= REREAD_SECONDS

    def _load(self) -> None:
        try:
            stamp = (self._certificate.stat().st_mtime_ns, self._key.stat().st_mtime_ns)
        except OSError as error:
            raise LoginError(f"cannot read the client certificate: {error}") from error
        if stamp != self._stamp:
            load_client_certificate(self._tls, self._certificate, self._key)
            self._stamp = stamp


def load_client_certificate(tls: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Make new connections present this certificate.

    Raises:
        LoginError: it cannot be read, or the key does not match.
    """
    try:
        tls.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise LoginError(
            f"cannot use the client certificate {certificate} with the key {key}: {error}"
        ) from error


def load_client_certificate_data(
    tls: ssl.SSLContext, certificate: bytes, key: bytes, origin: str
) -> None:
    """Make new connections present this PEM certificate; OpenSSL loads it from files only.

    Raises:
        LoginError: it is not PEM, or the key does not match.
    """
    with TemporaryDirectory(prefix="numapin-") as folder:
        certificate_path, key_path = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate_path.write_bytes(certificate)
        key_path.write_bytes(key)
        try:
            tls.load_cert_chain(certificate_path, key_path)
        except OSError as error:
            raise LoginError(f"{origin}: cannot use the client certificate: {error}") from error


def tls_context(
    authority: Path | bytes | None, origin: str, *, insecure: bool = False
) -> ssl.SSLContext:
    """Make the TLS context that verifies the API server.

    Args:
        authority: CA bundle, a file or PEM; None for the system's.
        origin: where the bundle is configured, for the error message.
        insecure: do not verify the server.

    Raises:
        LoginError: the bundle cannot be read.
    """
    try:
        if isinstance(authority, bytes):
            tls = ssl.create_default_context(cadata=authority.decode("ascii"))
        else:
            tls = ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise LoginError(f"{origin}: cannot read the certificate authority: {error}") from error
    # Python 3.13 refuses CAs without key identifiers; many clusters have them, and Go accepts them.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls
