"""One HTTP session to one API server: requests with deadlines, and typed errors."""

import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

from aiohappyeyeballs import AddrInfoType as AddressInfo
from yarl import URL

from numapin_client.errors import (
    ApiError,
    ClientError,
    ConnectionFailedError,
    IdleTimeoutError,
    MalformedAnswerError,
    error_of,
)
from numapin_client.login.credentials import Login
from numapin_client.resources import Json, encode
from numapin_client.transport.http_library import aiohttp
from numapin_client.transport.server_time import ServerTime
from numapin_client.transport.throttle import Throttle, retry_after_seconds
from numapin_client.transport.timeouts import DEFAULT_TIMEOUTS, Timeouts
from numapin_daemon.version import VERSION

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"

_REDIRECTS: Final = range(300, 400)
_WRONG_SERVER: Final = "check that the server's URL is that of a Kubernetes API server"


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the API server."""

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    content_type: str = JSON
    accept: str = JSON


class Connection:
    """A session; use as `async with Connection(login) as connection`.

    `before_write`, if set, is called right before each request but GET; what it raises stops that.
    `after_write`, if set, is called with each of these that was answered, and the refusal or None.
    `load_json` parses an answer; pydantic's parser takes half the time and 5 MiB. `server_time` is
    what the answers say of the server's clock.
    """

    def __init__(
        self,
        login: Login,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        user_agent: str = "numapin",
        throttle: Throttle | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            login: the server, and how to log in.
            timeouts: how long to wait.
            user_agent: the program's name.
            throttle: what requests wait for; by default only until an overload is over.
        """
        self.login, self._timeouts = login, timeouts
        self._throttle = throttle or Throttle()
        self.before_write: Callable[[], object] | None = None
        self.after_write: Callable[[Request, ClientError | None], object] | None = None
        self.load_json: Callable[[bytes], Any] = json.loads
        self.server_time = ServerTime()
        self._user_agent = f"{user_agent}/{VERSION}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            # Every watch holds a connection: the callers limit concurrent requests.
            limit=0,
            keepalive_timeout=self._timeouts.unused_seconds,
            socket_factory=self._socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": self._user_agent}
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()
        self._session = None

    async def ask(self, request: Request) -> Json:
        """Send a request and read its whole answer.

        Raises:
            ApiError: the server refused, as one of its subclasses.
            ConnectionFailedError: no answer, or an invalid one.
            LoginError: the credential is not available.
        """
        async with self.stream(request) as response:
            body = await response.read()
        return self.parse(body, shown(response))

    def parse(self, body: bytes, asked: str) -> Json:
        """Parse one JSON object, the answer to the request that `asked` names.

        Raises:
            MalformedAnswerError: it is not a JSON object.
        """
        try:
            answer = self.load_json(body)
        except (ValueError, RecursionError) as error:
            raise MalformedAnswerError(
                asked, f"the answer is not JSON ({error}): {_excerpt(body)}", _WRONG_SERVER
            ) from error
        if not isinstance(answer, dict):
            raise MalformedAnswerError(asked, f"not an object: {_excerpt(body)}", _WRONG_SERVER)
        return answer

    @asynccontextmanager
    async def stream(
        self, request: Request, idle_seconds: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its answer, if successful, for reading.

        Errors while the answer is being read are translated as well.

        Args:
            request: the request.
            idle_seconds: how long the server may send nothing, for answers that never end; if
                None, the whole answer has a time limit.

        Raises:
            as `ask`.
        """
        await self._throttle.wait(is_watch=idle_seconds is not None)
        try:
            response = await self._send(request, self._timeout(idle_seconds))
            try:
                ok = response.ok and response.status not in _REDIRECTS
                refused = None if ok else self._heeded(await _refusal(response))
                if self.after_write is not None and request.method != "GET":
                    self.after_write(request, refused)
                if refused is not None:
                    raise refused
                yield response
            finally:
                # A connection whose answer was not read to its end cannot be used again.
                response.close()
        except (aiohttp.ClientError, OSError) as error:  # also TimeoutError and ssl.SSLError
            asked = f"{request.method} {self.login.server}{request.path}"
            raise _translated(asked, error, self.login) from error

    def _heeded(self, error: ClientError) -> ClientError:
        """Let all other requests wait as well, if the server asks for that."""
        if isinstance(error, ApiError) and error.is_overload and error.retry_after_seconds:
            self._throttle.pause(error.retry_after_seconds)
        return error

    def _timeout(self, idle_seconds: float | None) -> aiohttp.ClientTimeout:
        total = self._timeouts.request_seconds if idle_seconds is None else None
        return aiohttp.ClientTimeout(total, self._timeouts.connect_seconds, sock_read=idle_seconds)

    async def _send(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send; if the server does not accept the credential, renew it and send once more."""
        response = await self._send_once(request, timeout)
        if response.status == HTTPStatus.UNAUTHORIZED and self.login.credentials:
            response.close()
            for credential in self.login.credentials:
                await credential.renew()
            response = await self._send_once(request, timeout)
        return response

    async def _send_once(
        self, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "the connection is used outside `async with`"
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        for credential in self.login.credentials:
            if header := await credential.authorization():
                headers["Authorization"] = header
                break
        if self.before_write and request.method != "GET":
            self.before_write()
        sent = time.monotonic()
        response = await self._session.request(
            request.method,
            URL(self.login.server + request.path, encoded=True),
            params=request.params,
            data=None if request.body is None else encode(request.body),
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=self.login.tls or True,
            server_hostname=self.login.tls_server_name,
            proxy=self.login.proxy,
        )
        self.server_time.note(response.headers.get("Date"), sent, time.monotonic())
        return response

    def _socket(self, address: AddressInfo) -> socket.socket:
        """Open a socket that the kernel closes if the peer does not respond for too long.

        Source: tcp(7), "TCP_KEEPIDLE", "TCP_USER_TIMEOUT".
        """
        family, kind, protocol, *_ = address
        opened = socket.socket(family, kind, protocol)
        third_seconds = max(1, int(self._timeouts.dead_peer_seconds / 3))
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, third_seconds)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, third_seconds)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
        milliseconds = int(self._timeouts.dead_peer_seconds * 1000)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        return opened


async def _refusal(response: aiohttp.ClientResponse) -> ClientError:
    """Convert an unsuccessful answer into an error."""
    asked, body = shown(response), await response.read()
    if response.status in _REDIRECTS:
        why = f"redirected to {response.headers.get('Location', 'nowhere')}"
        return MalformedAnswerError(asked, why, _WRONG_SERVER)
    wait_seconds = retry_after_seconds(response.headers.get("Retry-After", ""))
    answer = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(body)
    if not isinstance(answer, dict) or answer.get("kind") != "Status":
        # Proxies and load balancers answer with other formats.
        answer = {"message": f"{response.reason}: {_excerpt(body)}"}
    return error_of(asked, response.status, answer, wait_seconds)


def shown(response: aiohttp.ClientResponse) -> str:
    """The method and URL of the request, as errors name it."""
    return f"{response.method} {response.url.with_query(None)}"


def _excerpt(body: bytes) -> str:
    text = " ".join(body[:400].decode("utf-8", "replace").split())
    return text[:200] or "(empty)"


def _translated(asked: str, error: Exception, login: Login) -> ConnectionFailedError:
    """Describe what failed below HTTP, with a remedy if there is one."""
    if isinstance(error, aiohttp.SocketTimeoutError):
        return IdleTimeoutError(asked, "the server fell silent")
    if isinstance(error, TimeoutError):
        return ConnectionFailedError(asked, "no answer in time")
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        return MalformedAnswerError(asked, f"not an HTTP answer: {error}", _WRONG_SERVER)
    why, remedy = _why_not_connected(error, login)
    return ConnectionFailedError(asked, why, remedy)


def _why_not_connected(error: Exception, login: Login) -> tuple[str, str]:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"the server's certificate is not trusted: {error.certificate_error}",
            f"check the certificate authority and the server's name in {login.origin}",
        )
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return f"TLS failed: {error}", f"check the server and certificates in {login.origin}"
    if isinstance(error, aiohttp.ClientConnectorError):
        remedy = f"check that the API server runs and that {login.origin} names it"
        return f"cannot connect: {error.os_error}", remedy
    return f"the connection broke: {error or type(error).__name__}", ""
