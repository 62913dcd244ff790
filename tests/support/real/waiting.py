"""Run something beside a test, and wait for what it brings about."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

PATIENCE_SECONDS = 120.0
"""Only ends a test that fails: no test may depend on how busy the machine is."""
POLL_SECONDS = 0.01


async def eventually(check: Callable[[], Any], what: str = "") -> Any:
    """Wait until `check` returns something true, and return that.

    Args:
        check: a function or a coroutine function; OSError and AssertionError mean "not yet".
        what: names the condition when the wait fails.

    Raises:
        AssertionError: `PATIENCE_SECONDS` have passed; the message holds the last answer.
    """
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        try:
            answer = check()
            if inspect.isawaitable(answer):
                answer = await answer
            last = repr(answer)
        except (OSError, AssertionError) as error:
            answer, last = None, repr(error)
        if answer:
            return answer
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"waited {PATIENCE_SECONDS:g} s in vain: {what or check}: {last}")
        await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run it for as long as the context lasts; what it raises, the test raises."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work, name="beside the test")
        try:
            yield task
        finally:
            task.cancel()
