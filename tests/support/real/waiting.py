"""Run something beside a test, and wait for what it brings about."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

PATIENCE_SECONDS = 120.0
"""Only ends a test that fails: no test may depend on how busy the machine is."""
POLL_SECONDS = 0.01
LOOK_SECONDS = 4 * POLL_SECONDS
"""How much one look counts: a busy machine gets as many looks as an idle one."""
SLOWER = 5
"""... unless looks take longer than so many times that: a wait in vain must end some time."""


async def eventually(check: Callable[[], Any], what: str = "") -> Any:
    """Wait until `check` returns something true, and return that.

    Args:
        check: a function or a coroutine function; OSError and AssertionError mean "not yet".
        what: names the condition when the wait fails.

    Raises:
        AssertionError: `PATIENCE_SECONDS` of looks were in vain; the message holds the last answer.
    """
    clock, waited_seconds = asyncio.get_running_loop().time, 0.0
    while True:
        began = clock()
        try:
            answer = check()
            if inspect.isawaitable(answer):
                answer = await answer
            last = repr(answer)
        except (OSError, AssertionError) as error:
            answer, last = None, repr(error)
        if answer:
            return answer
        if waited_seconds > PATIENCE_SECONDS:
            raise AssertionError(f"waited {PATIENCE_SECONDS:g} s in vain: {what or check}: {last}")
        await asyncio.sleep(POLL_SECONDS)
        spent_seconds = clock() - began
        waited_seconds += max(min(spent_seconds, LOOK_SECONDS), spent_seconds / SLOWER)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run it for as long as the context lasts; what it raises, the test raises."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work, name="beside the test")
        try:
            yield task
        finally:
            task.cancel()
