"""An HTTP session that logs in, for a library that sends its own requests."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import aiohttp

from numapin_client.login.credentials import Login

_Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]


def open_session(
    login: Login, answered: Callable[[str, Mapping[str, str]], object]
) -> aiohttp.ClientSession:
    """A session that logs in, for a library; `answered` gets the path and query of each answer."""

    async def send(request: aiohttp.ClientRequest, handler: _Handler) -> aiohttp.ClientResponse:
        for credential in login.credentials:
            if header := await credential.authorization():
                request.headers["Authorization"] = header
                break
        return await handler(request)

    async def log_in(request: aiohttp.ClientRequest, handler: _Handler) -> aiohttp.ClientResponse:
        if login.tls_server_name is not None:
            request.server_hostname = login.tls_server_name
        response = await send(request, handler)
        if response.status == HTTPStatus.UNAUTHORIZED:
            response.close()
            for credential in login.credentials:
                await credential.renew()
            response = await send(request, handler)
        answered(request.url.path, request.url.query)
        return response

    connector = aiohttp.TCPConnector(limit=0, ssl=login.tls or True)
    return aiohttp.ClientSession(connector=connector, middlewares=(log_in,), proxy=login.proxy)
