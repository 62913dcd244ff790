"""An HTTP session that logs in, for a library that sends its own requests."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

from numapin_client.login.credentials import Login
from numapin_client.transport.http_library import aiohttp
from numapin_client.transport.timeouts import DEFAULT_TIMEOUTS

_Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]


class Observer(Protocol):
    """What is called for each request, in the thread of the session."""

    def __call__(self, path: str, query: Mapping[str, str], problem: str | None) -> object:
        """Take in a request: `NO_ANSWER` when it is sent; later why it failed, or None."""


NO_ANSWER: Final = "no answer yet"


def open_session(login: Login, observe: Observer) -> aiohttp.ClientSession:
    """A session that logs in, for a library. A body that is still being read has not failed."""

    async def observed(request: aiohttp.ClientRequest, handler: _Handler) -> aiohttp.ClientResponse:
        path, query = request.url.path, request.url.query
        observe(path, query, NO_ANSWER)
        try:
            response = await _send_logged_in(login, request, handler)
        except Exception as error:
            observe(path, query, str(error) or type(error).__name__)
            raise
        refused = f"{response.status} {response.reason}"
        observe(path, query, None if response.ok else refused)
        return response

    connector = aiohttp.TCPConnector(
        limit=0, ssl=login.tls or True, keepalive_timeout=DEFAULT_TIMEOUTS.unused_seconds
    )
    return aiohttp.ClientSession(connector=connector, middlewares=(observed,), proxy=login.proxy)


async def _send_logged_in(
    login: Login, request: aiohttp.ClientRequest, handler: _Handler
) -> aiohttp.ClientResponse:
    """Send a request; once more with renewed credentials if they are refused."""
    if login.tls_server_name is not None:
        request.server_hostname = login.tls_server_name
    response = await _send(login, request, handler)
    if response.status == HTTPStatus.UNAUTHORIZED:
        response.close()
        for credential in login.credentials:
            await credential.renew()
        response = await _send(login, request, handler)
    return response


async def _send(
    login: Login, request: aiohttp.ClientRequest, handler: _Handler
) -> aiohttp.ClientResponse:
    for credential in login.credentials:
        if header := await credential.authorization():
            request.headers["Authorization"] = header
            break
    return await handler(request)
