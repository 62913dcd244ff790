"""An election in a thread of its own: a renewal never waits for the work of another loop."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from numapin_client.client import ApiClient, connect
from numapin_client.login.credentials import Login
from numapin_client.transport.throttle import Throttle

Election = Callable[[ApiClient, Awaitable[None]], Awaitable[None]]
"""Takes part over a client until the second argument ends; it releases what it holds."""


async def in_own_thread(login: Login, election: Election) -> None:
    """Run it with a thread, a loop and a connection of its own, until cancelled.

    Cancel it when all writing has stopped.

    Raises:
        LoginError: the login is unusable.
    """
    stop: Future[None] = Future()

    async def run() -> None:
        throttle = Throttle(heeds_overload=False)
        async with connect(login, user_agent="numapin-operator", throttle=throttle) as api:
            await election(api, asyncio.wrap_future(stop))

    thread = asyncio.create_task(asyncio.to_thread(asyncio.run, run()), name="election thread")
    try:
        await asyncio.shield(thread)
    finally:
        if not stop.done():
            stop.set_result(None)
        await asyncio.wait((thread,))
