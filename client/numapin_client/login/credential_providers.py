"""Credentials from other programs and from identity providers.

The `kubernetes` package implements both. It is large, so this module is imported only if a
kubeconfig needs it.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode

from numapin_client.errors import LoginError
from numapin_client.login.credentials import in_thread, load_client_certificate_data
from numapin_daemon.clock import Clock, SystemClock

PLUGIN_SECONDS: Final = 60.0
"""How long a plug-in may take; some ask the user to log in."""

EXPIRY_MARGIN: Final = timedelta(seconds=10)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """How a kubeconfig runs a plug-in.

    Attributes:
        location: the entry, such as `/root/.kube/config: users[name=admin].exec`.
        entry: the `exec` entry.
        cluster: the `cluster` entry, which is passed to plug-ins that request it.
        folder: the kubeconfig's folder, which a relative command refers to.
    """

    location: str
    entry: Mapping[str, Any]
    cluster: Mapping[str, Any]
    folder: Path


class LoopsLock:
    """A lock for what several event loops, each in a thread of its own, share.

    Take `of_loop()` in the loop, and within it `of_threads` in the thread that does the work: an
    asyncio.Lock works in one loop only, and waiting for a lock of threads would block a loop.
    """

    def __init__(self) -> None:
        self.of_threads = threading.Lock()
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def of_loop(self) -> asyncio.Lock:
        """The lock of the running loop."""
        return self._of_loops.setdefault(asyncio.get_running_loop(), asyncio.Lock())


class ExecCredential:
    """A program that prints an ExecCredential; it runs again when that expires or is refused."""

    def __init__(
        self, plugin: ExecPlugin, tls: ssl.SSLContext | None, clock: Clock | None = None
    ) -> None:
        """Store the configuration; nothing runs yet.

        Args:
            plugin: what to run.
            tls: receives the client certificate if the plug-in provides one.
            clock: compared with the expiry; the machine's clock by default.
        """
        self._plugin, self._tls, self._clock = plugin, tls, clock or SystemClock()
        self._lock = LoopsLock()
        self._header: str | None = None
        self._expires: datetime | None = None
        self._ready = False

    async def authorization(self) -> str | None:
        """The header with the plug-in's token, or None if it provides only a certificate."""
        async with self._lock.of_loop():
            if self._outdated():
                await _call_with_deadline(self._refresh, self._plugin.location)
        return self._header

    async def renew(self) -> None:
        """Run the plug-in again at the next request."""
        self._ready = False

    def _outdated(self) -> bool:
        expired = self._expires is not None and self._clock.now() >= self._expires - EXPIRY_MARGIN
        return expired or not self._ready

    def _refresh(self) -> None:
        with self._lock.of_threads:
            if self._outdated():
                self._accept(self._run())

    def _run(self) -> Mapping[str, Any]:
        try:
            provider = ExecProvider(
                ConfigNode("exec", dict(self._plugin.entry)),
                str(self._plugin.folder),
                ConfigNode("cluster", dict(self._plugin.cluster)),
            )
            status: Mapping[str, Any] = provider.run()
        except (ConfigException, OSError) as error:
            hint = self._plugin.entry.get("installHint")
            problem = f"{self._plugin.location}: {error}"
            raise LoginError(f"{problem}; {hint}" if hint else problem) from error
        return status

    def _accept(self, status: Mapping[str, Any]) -> None:
        token, certificate = status.get("token"), status.get("clientCertificateData")
        if not token and not certificate:
            problem = "the plug-in gave no token and no certificate"
            raise LoginError(f"{self._plugin.location}: {problem}")
        if certificate and self._tls is not None:
            load_client_certificate_data(
                self._tls,
                certificate.encode(),
                str(status.get("clientKeyData") or "").encode(),
                self._plugin.location,
            )
        self._header = f"Bearer {token}" if token else None
        expires = status.get("expirationTimestamp")
        self._expires = datetime.fromisoformat(expires) if expires else None
        self._ready = True


class AuthProviderCredential:
    """An `auth-provider` entry (such as OIDC), which the `kubernetes` package renews."""

    def __init__(self, location: str, paths: str, context: str) -> None:
        """Store the kubeconfig paths, joined by `:`, and the context; nothing is loaded yet."""
        self._location, self._paths, self._context = location, paths, context
        self._lock = LoopsLock()
        self._header: Callable[[], str | None] | None = None

    async def authorization(self) -> str | None:
        """The header with the token, which the package renews when it has expired."""
        async with self._lock.of_loop():
            header = await _call_with_deadline(self._read, self._location)
        if not header:
            raise LoginError(
                f"{self._location}: no token in it, and none could be obtained; log in again"
            )
        return header

    async def renew(self) -> None:
        """Load the kubeconfig again at the next request."""
        self._header = None

    def _read(self) -> str | None:
        with self._lock.of_threads:
            if self._header is None:
                self._header = self._load()
            return self._header()

    def _load(self) -> Callable[[], str | None]:
        configuration = Configuration()
        try:
            load_kube_config(self._paths, self._context, configuration)
        except ConfigException as error:
            raise LoginError(f"{self._location}: {error}") from error
        return lambda: configuration.get_api_key_with_prefix("BearerToken")


async def _call_with_deadline(function: Callable[[], T], location: str) -> T:
    """Run a blocking function with a deadline; the thread itself cannot be stopped."""
    try:
        async with asyncio.timeout(PLUGIN_SECONDS):
            return await in_thread(function)
    except TimeoutError as error:
        raise LoginError(f"{location}: no answer within {PLUGIN_SECONDS:.0f} s") from error
