"""An example program that runs and prints a line of JSON for each change."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Example:
    """The example, running."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def said(self) -> dict[str, Any]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            line: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return line


@asynccontextmanager
async def started(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program, until the end of the context."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        await process.communicate()
