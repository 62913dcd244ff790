"""An API server in memory that keeps objects as the real one does, and fails on demand.

What it keeps is held to the real API server by `tests/integration/client/test_servers.py`.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiohttp import web

from numapin_api.names import GROUP
from numapin_client.login.credentials import Login
from numapin_client.resources import CPU_POLICIES, PODS, Json, Resource
from support.fakes.apiserver_answers import Answer, denial, not_found, refusal, status
from support.fakes.apiserver_requests import collection_of, right_of, selection, where_of

VERSIONS = ("v1beta1", "v1alpha1")
"""Those of numapin's API."""


class Change(NamedTuple):
    """One entry of the history."""

    version: int
    kind: str
    collection: str
    body: Json


@dataclass
class Watcher:
    """An open watch. What is put on its queue is sent: bytes, or how to end."""

    chosen: Callable[[Change], bool]
    start: int
    """What is not newer is not sent, as the real server does not."""
    queue: "asyncio.Queue[bytes | None]" = field(default_factory=asyncio.Queue)
    """None ends the answer as a server does that is done with it."""
    transport: asyncio.BaseTransport | None = None


class FakeApiServer:
    """Use as `async with FakeApiServer() as server`; everything is open to the test."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.history: list[Change] = []
        self.version = 100
        self.oldest = 0
        self.snapshots: dict[str, tuple[int, list[Json]]] = {}
        self.watchers: list[Watcher] = []
        self.requests: list[web.Request] = []
        self.answers: list[Answer] = []
        self.gone_as_event = True
        self.token = ""
        self.forbidden: set[str] = set()
        """Rights that nobody has, such as `list pods` or `get pods/log`."""
        self.unknown: set[str] = set()
        """Resources whose CRD is not installed, by their plural."""
        self.logs: dict[str, bytes] = {}
        """The log of each pod."""
        self.pages: dict[str, Callable[[], Answer]] = {}
        """What pods answer through the proxy, by `NAME:PORT/PAGE`."""
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def login(self) -> Login:
        """How to reach it."""
        return Login(server=self.url, origin="a test")

    # What happens on the server's side.

    def put(self, resource: Resource, body: Json) -> Json:
        """Create or replace an object, as another client would."""
        metadata = body["metadata"]
        place = (resource.collection_path(), metadata.get("namespace", ""), metadata["name"])
        kind = "MODIFIED" if place in self.objects else "ADDED"
        self.version += 1
        kept: Json = json.loads(json.dumps(body))
        old = self.objects.get(place, {"metadata": {"uid": f"uid-{self.version}"}})
        kept["metadata"]["uid"] = old["metadata"]["uid"]
        kept["metadata"]["resourceVersion"] = str(self.version)
        self.objects[place] = kept
        self._record(Change(self.version, kind, place[0], kept))
        return kept

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Json:
        """Delete an object, as another client would."""
        place = (resource.collection_path(), namespace, name)
        self.version += 1
        last: Json = json.loads(json.dumps(self.objects.pop(place)))
        last["metadata"]["resourceVersion"] = str(self.version)
        self._record(Change(self.version, "DELETED", place[0], last))
        return last

    def forget_history(self) -> None:
        """Compact: old versions and continue tokens are Gone from now on."""
        self.version += 1
        self.oldest = self.version
        self.history.clear()
        self.snapshots.clear()

    def bookmark(self) -> None:
        """Send the watchers a bookmark with the newest version."""
        body = {"metadata": {"resourceVersion": str(self.version)}}
        text = json.dumps({"type": "BOOKMARK", "object": body}).encode() + b"\n"
        for watcher in self.watchers:
            if self.version > watcher.start:
                watcher.queue.put_nowait(text)

    def send(self, text: bytes | None) -> None:
        """Send anything to all watchers; None ends their watches cleanly."""
        for watcher in self.watchers:
            watcher.queue.put_nowait(text)

    def cut(self) -> None:
        """Cut the connections of all watchers."""
        for watcher in self.watchers:
            if isinstance(watcher.transport, asyncio.WriteTransport):
                watcher.transport.abort()

    def _record(self, change: Change) -> None:
        self.history.append(change)
        for watcher in self.watchers:
            if watcher.chosen(change) and change.version > watcher.start:
                watcher.queue.put_nowait(_line(change))

    # What clients ask.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.answers:
            answer = self.answers.pop(0)
            if answer.stall:
                await asyncio.Event().wait()
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return refusal(401, "Unauthorized", "Unauthorized")
        if (about := self._about(request.path)) is not None:
            return web.json_response(about)
        where = where_of(request.path)
        if where is None or where["plural"] in self.unknown:
            return web.Response(status=404, text="404 page not found\n")
        if (right := right_of(request, where)) in self.forbidden:
            return refusal(403, "Forbidden", denial(right, where))
        return await self._resource(request, where)

    def _about(self, path: str) -> Json | None:
        """What the server says of itself at a path; None if nothing."""
        if path == "/version":
            return {"gitVersion": "v1.36.3"}
        if path == f"/apis/{GROUP}" and CPU_POLICIES.plural not in self.unknown:
            versions = [{"groupVersion": f"{GROUP}/{one}", "version": one} for one in VERSIONS]
            return {"kind": "APIGroup", "name": GROUP, "versions": versions}
        return None

    async def _resource(self, request: web.Request, where: dict[str, str]) -> web.StreamResponse:
        if where["subresource"] == "log":
            return web.Response(body=self.logs[where["name"]], content_type="text/plain")
        if where["subresource"] == "proxy":
            return self._proxied(where)
        if request.query.get("watch"):
            return await self._watch(request, where)
        if request.method == "GET" and not where["name"]:
            return self._list(request, where)
        return self._one(request, where, await request.json() if request.can_read_body else {})

    def _proxied(self, where: dict[str, str]) -> web.Response:
        """Answer as the pod does; one that is gone, or does not listen, as the API server does."""
        name, _, port = where["name"].partition(":")
        if (PODS.collection_path(), where["namespace"], name) not in self.objects:
            return refusal(404, "NotFound", not_found(where | {"name": name}))
        listening = [one for one in self.pages if one.startswith(f"{name}:{port}/")]
        if not listening:
            why = "error trying to reach service: dial tcp: connect: connection refused"
            return refusal(503, "ServiceUnavailable", why)
        if (page := self.pages.get(where["name"] + where["page"])) is None:
            return web.Response(status=404, text="there are /healthz and /readyz\n")
        answer = page()
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    def _list(self, request: web.Request, where: dict[str, str]) -> web.Response:
        if token := request.query.get("continue"):
            if token not in self.snapshots:
                return refusal(410, "Expired", "The provided continue parameter is too old")
            version, found = self.snapshots[token]
        else:
            chosen, version = _selected(request, where), self.version
            states = [
                Change(0, "", place[0], self.objects[place]) for place in sorted(self.objects)
            ]
            found = [_untyped(state.body) for state in states if chosen(state)]
        limit = int(request.query.get("limit", 0)) or len(found)
        metadata = {"resourceVersion": str(version)}
        if len(found) > limit:
            metadata["continue"] = f"token-{len(self.snapshots)}"
            self.snapshots[metadata["continue"]] = version, found[limit:]
        if "as=PartialObjectMetadataList" in request.headers["Accept"]:
            found = [{"metadata": one["metadata"]} for one in found]
        return web.json_response({"kind": "List", "metadata": metadata, "items": found[:limit]})

    async def _watch(self, request: web.Request, where: dict[str, str]) -> web.StreamResponse:
        start = int(request.query["resourceVersion"])
        if start < self.oldest and not self.gone_as_event:
            return refusal(410, "Expired", "too old resource version")
        chosen = _selected(request, where)
        watcher = Watcher(chosen, start, transport=request.transport)
        for change in self.history:
            if change.version > start and chosen(change):
                watcher.queue.put_nowait(_line(change))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.watchers.append(watcher)
        try:
            await response.prepare(request)
            if start < self.oldest:
                gone = {"type": "ERROR", "object": status(410, "Expired", "too old version")}
                watcher.queue.put_nowait(json.dumps(gone).encode() + b"\n")
                watcher.queue.put_nowait(None)
            while (text := await watcher.queue.get()) is not None:
                await response.write(text)
        finally:
            self.watchers.remove(watcher)
        return response

    def _one(self, request: web.Request, where: dict[str, str], body: Json) -> web.Response:
        resource = Resource(where["group"], where["version"], where["plural"], "", True)
        namespace, name = where["namespace"], where["name"]
        if request.method == "POST":
            metadata = body["metadata"]
            if (resource.collection_path(), namespace, metadata["name"]) in self.objects:
                return refusal(409, "AlreadyExists", f"{metadata['name']} already exists")
            return web.json_response(self.put(resource, body), status=201)
        old = self.objects.get((resource.collection_path(), namespace, name))
        if old is None:
            return refusal(404, "NotFound", not_found(where))
        asked = body.get("preconditions") or body.get("metadata") or {}
        for each in ("uid", "resourceVersion"):
            if asked.get(each) and asked[each] != old["metadata"][each]:
                return refusal(409, "Conflict", "the object has been modified")
        if request.method == "DELETE":
            return web.json_response(self.remove(resource, name, namespace))
        if request.method == "PATCH":
            body = _merged(old, body)
        return web.json_response(old if request.method == "GET" else self.put(resource, body))


def _selected(request: web.Request, where: dict[str, str]) -> Callable[[Change], bool]:
    matches, collection = selection(request, where), collection_of(where)
    return lambda change: change.collection == collection and matches(change.body)


def _line(change: Change) -> bytes:
    return json.dumps({"type": change.kind, "object": change.body}).encode() + b"\n"


def _untyped(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("kind", "apiVersion")}


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    base = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            base.pop(name, None)
        else:
            base[name] = _merged(base.get(name), value)
    return base
