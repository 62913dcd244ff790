"""`numapin serve` as a process, and what it tells a browser."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse

Json = dict[str, Any]


@dataclass
class Seen:
    """What a browser knows by the events that it has read."""

    rows: dict[str, Json] = field(default_factory=dict)
    status: Json = field(default_factory=dict)

    async def until(self, stream: ClientResponse, done: Callable[["Seen"], object]) -> None:
        """Read events until something holds."""
        event = ""
        while not done(self):
            line = (await stream.content.readline()).decode().strip()
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                self._take(event, json.loads(line.removeprefix("data: ")))

    def _take(self, event: str, data: Json) -> None:
        if event == "status":
            self.status = data
        elif event == "rows":
            self.rows |= {one["name"]: one for one in data["rows"]}
            for name in data["gone"]:
                self.rows.pop(name, None)


@asynccontextmanager
async def served(*options: str, port: str = "0") -> AsyncIterator[str]:
    """Run `numapin serve`, on any port by default; yields its address without a slash behind."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "numapin_cli.main", "serve", "--port", port, *options),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        yield line.split()[0].rstrip("/")
    finally:
        process.terminate()
        await process.wait()
