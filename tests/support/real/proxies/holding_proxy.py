"""A proxy before an API server that holds back what watches of some kinds deliver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from numapin_client.login.credentials import Login

_KUBECONFIG = """\
clusters: [{name: c, cluster: {server: "URL"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""

_PASSED_ON = ("Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "Retry-After")


class HoldingProxy:
    """Forwards every request with a login of its own; `url` is where to send them."""

    def __init__(self, login: Login, session: aiohttp.ClientSession) -> None:
        self._login, self._session = login, session
        self._held: dict[str, asyncio.Event] = {}
        self.url = ""

    def hold(self, *plurals: str) -> None:
        """Let watches of these kinds, such as `pods`, deliver nothing more; requests pass."""
        for plural in plurals:
            self._held.setdefault(plural, asyncio.Event())

    def let_go(self, *plurals: str) -> None:
        """Let these watches deliver again, first what was held back."""
        for plural in plurals:
            self._held.pop(plural).set()

    def kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig, written into this folder, with which a program uses the proxy."""
        path = folder / "proxy-kubeconfig"
        path.write_text(_KUBECONFIG.replace("URL", self.url))
        return path

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Forward one request, and its answer as it comes."""
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        for credential in self._login.credentials:
            if header := await credential.authorization():
                headers["Authorization"] = header
        watched = request.path.rsplit("/", 1)[-1] if request.query.get("watch") else ""
        async with self._session.request(
            request.method,
            f"{self._login.server}{request.path}",
            params=request.query,
            data=await request.read() or None,
            headers=headers,
            ssl=self._login.tls or True,
        ) as answer:
            passed = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if held := self._held.get(watched):
                    await held.wait()
                await response.write(chunk)
        return response


@asynccontextmanager
async def holding_proxy(login: Login) -> AsyncIterator[HoldingProxy]:
    """Serve on 127.0.0.1 for the duration of the context."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
        proxy = HoldingProxy(login, session)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", proxy.serve)
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()
