"""Shows something again whenever objects of the cluster change, until it is interrupted."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, NoReturn, TypeVar

from numapin_cli.live.server import said
from numapin_client.cache.informer import Informer
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError
from numapin_client.resources import Json

T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0
"""Changes that follow one another are shown together."""

ALIVE_SECONDS: Final = 5.0
"""How often it is checked whether changes still arrive."""

Show = Callable[[T, str], None]
"""Shows a value, and why it may be out of date; that is empty if it is not."""


async def follow(
    client: ApiClient,
    sources: Sequence[Source],
    read: Callable[[], Awaitable[T]],
    show: Show[T],
) -> NoReturn:
    """Read and show, then do both again after every change of `sources`.

    What cannot be read later is shown as a problem beside the last value.

    Raises:
        ClientError: the first read failed.
        BrokenPipeError: nobody reads what is shown.
    """
    logging.getLogger("numapin_client").addHandler(logging.NullHandler())  # `show` says it
    shown = _Shown(read, show)
    await shown.first()
    changed = asyncio.Event()
    informers = [Informer(client, source, _version, lambda _: changed.set()) for source in sources]
    try:
        async with asyncio.TaskGroup() as tasks:
            for number, informer in enumerate(informers):
                tasks.create_task(informer.run(), name=f"follow-{number}")
            while True:
                await _wait(changed)
                problem = next((one.problem for one in informers if one.problem), None)
                reread = changed.is_set()
                changed.clear()  # before the read: what changes meanwhile is read again
                await shown.again(problem, reread=reread)
    except* BrokenPipeError as failed:
        raise BrokenPipeError from failed


async def _wait(changed: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(ALIVE_SECONDS):
            await changed.wait()
    await asyncio.sleep(PAUSE_SECONDS)


class _Shown(Generic[T]):
    """What is shown, and why it may be out of date."""

    def __init__(self, read: Callable[[], Awaitable[T]], show: Show[T]) -> None:
        self._read, self._show = read, show
        self._problem = ""

    async def first(self) -> None:
        self._value = await self._read()
        self._show(self._value, "")

    async def again(self, problem: ClientError | None, *, reread: bool) -> None:
        before, self._problem = self._problem, said(problem) if problem else ""
        if reread or (before and not self._problem):
            try:
                self._value = await self._read()
            except ClientError as error:
                self._problem = said(error)
        elif self._problem == before:
            return
        self._show(self._value, self._problem)


def _version(body: Json) -> str:
    return str(body["metadata"]["resourceVersion"])
