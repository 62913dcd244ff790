"""Run something beside a test, and wait for what it brings about."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

WAIT_SECONDS = 30.0


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 (any condition, not one that we set)
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run it for as long as the context lasts; what it raises, the test raises."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work, name="beside the test")
        try:
            yield task
        finally:
            task.cancel()
