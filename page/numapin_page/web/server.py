"""The page over HTTP: files, answers as JSON, and a stream of events for each browser."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

from numapin_cli.live.server import said
from numapin_cli.subcommand import CommandError
from numapin_client.errors import ClientError, ForbiddenError
from numapin_page.live.answers import Answers
from numapin_page.live.fleet import COALESCED_SECONDS, Fleet, Subscriber
from numapin_page.live.parts import Parts
from numapin_page.live.planned import Planned
from numapin_page.views.node_page import amounts_left, node_page
from numapin_page.web.hosts import HEADERS, why_refused

log = logging.getLogger(__name__)

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MOST_READERS: Final = 100
ALIVE_SECONDS: Final = 15.0
"""A browser that hears nothing for longer says that the connection is lost."""

SLOW_SECONDS: Final = 30.0
"""How long a reader may take for one message."""

FOUND: Final = 50
"""Pods in the answer to a search."""

_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Site:
    """What is served.

    Attributes:
        fleet: the lines of all nodes.
        parts: the objects.
        answers: answers about one pod or node.
        hosts: what the header `Host` may say.
        about: what each status message says besides, such as the version.
        planned: what an edit would change; None if no edit was given.
    """

    fleet: Fleet
    parts: Parts
    answers: Answers
    hosts: frozenset[str]
    about: Json
    planned: Planned | None = None

    def application(self) -> web.Application:
        """The routes; everything but GET is refused."""
        application = web.Application(middlewares=[self._guard])
        routes = application.router
        for one in files("numapin_page").joinpath("files").iterdir():
            kind = _TYPES[one.name.rpartition(".")[2]]
            path = "/" if one.name == "index.html" else f"/{one.name}"
            routes.add_get(path, _file(one.read_bytes(), kind))
        routes.add_get("/events", self._events)
        routes.add_get("/api/nodes/{name}", self._node)
        routes.add_get("/api/amounts/{name}", self._amounts)
        routes.add_get("/api/pods/{namespace}/{name}", self._pod)
        routes.add_get("/api/search", self._search)
        if self.planned is not None:
            routes.add_get("/api/plan", partial(_plan, self.planned))
            routes.add_get("/api/plan/{name}", partial(_planned_node, self.planned))
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what no own page asks for, and answer errors as JSON."""
        if why := why_refused(self.hosts, request.headers):
            return _json({"error": why}, 403)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = _json({"error": error.reason}, error.status)
        except ClientError as error:
            status = 403 if isinstance(error, ForbiddenError) else 502
            response = _json({"error": said(error)}, status)
        except CommandError as error:
            response = _json({"error": str(error)}, 404)
        except Exception:
            log.exception("cannot answer", extra={"path": request.path})
            response = _json({"error": "numapin serve cannot show this; its log says why"}, 500)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _node(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.parts.names():
            raise CommandError(f"there is no node {name}")
        state = self.parts.state(name)
        return _json(node_page(state, self.parts.beside(name, state.policy)))

    async def _amounts(self, request: web.Request) -> web.Response:
        found, why = await self.answers.amounts(request.match_info["name"])
        return _json(amounts_left(found, why))

    async def _pod(self, request: web.Request) -> web.Response:
        of = request.match_info
        return _json(await self.answers.pod(of["namespace"], of["name"]))

    async def _search(self, request: web.Request) -> web.Response:
        text = request.query.get("pod", "")
        found = list(self.parts.with_pod(text, FOUND)) if text else []
        return _json({"pods": found, "most": FOUND})

    def _status(self) -> Json:
        has_plan = self.planned is not None
        return {**self.about, "hasPlan": has_plan, **self.parts.status()}

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self.fleet.readers >= MOST_READERS:
            return _json({"error": f"{MOST_READERS} pages are open already"}, 503)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        reader = self.fleet.subscribe()
        try:
            await response.prepare(request)
            with suppress(ConnectionError, TimeoutError):
                await self._stream(response, reader)
        finally:
            self.fleet.unsubscribe(reader)
        return response

    async def _stream(self, response: web.StreamResponse, reader: Subscriber) -> None:
        """Send what changes until the reader is gone, or too slow."""
        await _send(response, "start", "{}")
        told = ""
        while True:
            if (status := json.dumps(self._status())) != told:
                told = status
                await _send(response, "status", status)
            if names := reader.taken():
                await _send(response, "rows", self.fleet.message(names))
                continue
            reader.woken.clear()
            try:
                async with asyncio.timeout(ALIVE_SECONDS):
                    await reader.woken.wait()
                await asyncio.sleep(COALESCED_SECONDS)
            except TimeoutError:
                await _send(response, "alive", "{}")


async def _send(response: web.StreamResponse, event: str, data: str) -> None:
    """Send one event; JSON has no line break.

    Raises:
        TimeoutError: the reader takes too long.
    """
    async with asyncio.timeout(SLOW_SECONDS):
        await response.write(f"event: {event}\ndata: {data}\n\n".encode())


async def _plan(planned: Planned, request: web.Request) -> web.Response:
    first = request.query.get("first", "0")
    return _json(planned.status(int(first) if first.isdecimal() else 0))


async def _planned_node(planned: Planned, request: web.Request) -> web.Response:
    return _json(await planned.node(request.match_info["name"]))


def _json(content: Json, status: int = 200) -> web.Response:
    return web.json_response(content, status=status, headers=HEADERS)


def _file(content: bytes, kind: str) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return answer
