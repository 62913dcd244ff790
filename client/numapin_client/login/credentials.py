"""What proves to the API server who we are, and to us that it is the API server."""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from numapin_client.errors import LoginError

REREAD_SECONDS: Final = 60.0
"""How old a credential read from a file may grow.

Source: client-go `transport.NewCachedFileTokenSource`, period 1 minute.
"""


class Credential(Protocol):
    """Something that vouches for us; it may change while we run."""

    async def authorization(self) -> str | None:
        """Give the Authorization header to send now, or None when it vouches by other means.

        Raises:
            LoginError: the credential cannot be had.
        """

    async def renew(self) -> None:
        """Forget what was read: the server did not accept it."""


@dataclass(frozen=True)
class Login:
    """Where the API server is, and how to be known to it.

    Attributes:
        server: URL without a slash at its end, such as `https://10.0.0.1:443`.
        origin: where this was read, for error messages.
        credentials: asked in order, the first header wins; none of them is anonymous.
        tls: None for plain HTTP.
        tls_server_name: name expected in the server's certificate, if not the URL's host.
        proxy: URL of an HTTP proxy, or None.
    """

    server: str
    origin: str
    credentials: tuple[Credential, ...] = ()
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str | None = None
    proxy: str | None = None


@dataclass(frozen=True)
class FixedCredential:
    """A header that stays the same for good."""

    header: str = field(repr=False)

    async def authorization(self) -> str:
        """Give the header."""
        return self.header

    async def renew(self) -> None:
        """Do nothing: there is no other."""


class TokenFile:
    """A bearer token in a file that somebody else replaces, as the kubelet does for pods."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._header: str | None = None
        self._read_at = 0.0

    async def authorization(self) -> str:
        """Give the token, read at most a minute ago."""
        if self._header is None or self._clock() - self._read_at >= REREAD_SECONDS:
            self._header = await asyncio.to_thread(self._read)
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
    """A CA bundle in a file that somebody else replaces, as when a cluster's CA is rotated.

    What it held before stays trusted until we end.
    """

    def __init__(
        self, tls: ssl.SSLContext, path: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take it that `tls` trusts the bundle as it is now."""
        self._tls, self._path, self._clock = tls, path, clock
        self._stamp = path.stat().st_mtime_ns
        self._read_at = clock()

    async def authorization(self) -> None:
        """Give no header; see to it that new connections trust the present bundle."""
        if self._clock() - self._read_at >= REREAD_SECONDS:
            await asyncio.to_thread(self._load)
            self._read_at = self._clock()

    async def renew(self) -> None:
        """Do nothing: the server that refuses us is one that we trust."""

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
    """A client certificate in files that somebody else replaces, as the kubelet's own is."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        certificate: Path,
        key: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the certificate.

        Raises:
            LoginError: it cannot be read, or the key does not belong to it.
        """
        self._tls, self._certificate, self._key, self._clock = tls, certificate, key, clock
        self._stamp: tuple[int, int] | None = None
        self._load()
        self._read_at = self._clock()

    async def authorization(self) -> None:
        """Give no header; see to it that new connections show the present certificate."""
        if self._clock() - self._read_at >= REREAD_SECONDS:
            await asyncio.to_thread(self._load)
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
    """Have new connections show this certificate.

    Raises:
        LoginError: it cannot be read, or the key does not belong to it.
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
    """Have new connections show this PEM certificate; OpenSSL takes it from files only.

    Raises:
        LoginError: it is not PEM, or the key does not belong to it.
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
    """Make the context in which the API server must show its certificate.

    Args:
        authority: CA bundle, a file or PEM; None trusts what the system trusts.
        origin: where the bundle was named, for the error message.
        insecure: trust whoever answers.

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
    # Python 3.13 refuses CAs without key identifiers; many clusters have such, Go takes them.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls
