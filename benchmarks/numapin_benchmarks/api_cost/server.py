"""A real etcd and kube-apiserver, requests to it, and what both used for them."""

import asyncio
import json
import re
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl

from numapin_benchmarks.api_cost.layouts.whole import Call, Json, Layout, Write
from numapin_benchmarks.api_cost.rows import Cost
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.transport.connection import Connection, Request
from numapin_client.transport.timeouts import DEFAULT_TIMEOUTS, Timeouts
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.daemons import wait_until
from numapin_lab.processes.ports import choose
from numapin_lab.processes.usage import cpu_seconds

IDLE_SECONDS = 3.0
SETTLE_SECONDS = 2.0
SERVED_SECONDS = 120.0
SILENCE_SECONDS = 600.0
PUT_BYTES = re.compile(r"^etcd_debugging_mvcc_total_put_size_in_bytes (\S+)$", re.MULTILINE)


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """A control plane in a folder of its own, ended and removed with the context."""
    programs = {name: found.path for name, found in provide(CONTROL_PLANE).items()}
    with tempfile.TemporaryDirectory(prefix="numapin-api-cost-") as folder:
        plane = ControlPlane(Path(folder, "plane"), ControlPlanePorts(*choose(3)), programs)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


@dataclass(frozen=True)
class Used:
    """What both processes have used so far.

    Attributes:
        api: CPU seconds of the API server.
        etcd: CPU seconds of etcd.
        put_bytes: bytes of all keys and values that were put into etcd.
    """

    api: float
    etcd: float
    put_bytes: float

    @classmethod
    def now(cls, plane: ControlPlane) -> "Used":
        """The values now."""
        api, etcd = plane.apiserver.pid(), plane.etcd.pid()
        assert api is not None
        assert etcd is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{plane.ports.etcd}/metrics") as page:
            found = PUT_BYTES.search(page.read().decode())
        assert found is not None
        return cls(cpu_seconds(api), cpu_seconds(etcd), float(found[1]))

    def since(self, before: "Used") -> "Used":
        """The difference."""
        names = ("api", "etcd", "put_bytes")
        return Used(*(getattr(self, name) - getattr(before, name) for name in names))


@dataclass
class Api:
    """Requests to the API server; `stored` is the newest answer by path."""

    plane: ControlPlane
    connection: Connection
    stored: dict[str, Json] = field(default_factory=dict)

    async def send(self, call: Call) -> int:
        """Send one request; returns the length of the answer.

        Raises:
            ClientError: the API server refused it.
        """
        request = Request(call.method, call.path, None, call.body, call.content, call.accept)
        async with self.connection.stream(request) as answer:
            text = await answer.read()
        found = json.loads(text)
        if call.method != "DELETE" and found["kind"] != "Status":
            name = f"/{found['metadata']['name']}" if call.method == "POST" else ""
            self.stored[call.path.removesuffix("/status") + name] = found
        return len(text)

    async def measure(self, write: Write, steps: range) -> Cost:
        """Make a write once for each step, one after the other."""
        await asyncio.sleep(SETTLE_SECONDS)
        before = Used.now(self.plane)
        await asyncio.sleep(IDLE_SECONDS)
        idle, begun, size = Used.now(self.plane).since(before), _clock(), 0
        before = Used.now(self.plane)
        for step in steps:
            size = await self.send(write.call(step, self.stored))
        seconds, count = _clock() - begun, len(steps)
        used, share = Used.now(self.plane).since(before), seconds / IDLE_SECONDS
        return Cost(
            api_ms=(used.api - idle.api * share) / count * 1000,
            etcd_ms=(used.etcd - idle.etcd * share) / count * 1000,
            etcd_bytes=(used.put_bytes - idle.put_bytes * share) / count,
            object_bytes=size,
            wall_ms=seconds / count * 1000,
        )

    async def watch(self, path: str, query: str) -> None:
        """Read the events of a collection, until cancelled."""
        request = Request("GET", path, {"watch": "1", **dict(parse_qsl(query))})
        while True:
            async with self.connection.stream(request, SILENCE_SECONDS) as answer:
                async for _ in answer.content.iter_any():
                    pass

    @asynccontextmanager
    async def watched(self, sources: Sequence[tuple[str, str]]) -> AsyncIterator[None]:
        """Watch collections during the context, as operator and enforcers do."""
        tasks = [asyncio.create_task(self.watch(*one), name=one[0]) for one in sources]
        try:
            await asyncio.sleep(SETTLE_SECONDS + len(tasks) / 50)
            yield
            ended = [one for one in tasks if one.done()]
            assert not ended, f"a watch ended: {ended[0].exception()!r}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def serve(self, layout: Layout) -> None:
        """Define the kinds of a layout; returns when they are served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in layout.kinds:
            await self.send(Call("POST", path, definition))
        for definition in layout.kinds:
            spec = definition["spec"]
            version = f"{spec['group']}/{spec['versions'][0]['name']}"
            served = partial(_served, self.plane, f"/apis/{version}/{spec['names']['plural']}")
            await asyncio.to_thread(wait_until, served, layout.name, SERVED_SECONDS)


def _served(plane: ControlPlane, path: str) -> bool:
    """Whether there is such a collection."""
    try:
        plane.api.get(path)
    except AnswerError:
        return False
    return True


@asynccontextmanager
async def connect(plane: ControlPlane, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> AsyncIterator[Api]:
    """A session of the administrator."""
    async with Connection(kubeconfig_login(str(plane.kubeconfig)), timeouts) as connection:
        yield Api(plane, connection)


def _clock() -> float:
    return asyncio.get_running_loop().time()
