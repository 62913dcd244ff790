"""One worker of a queue: it takes key after key, and what fails waits for its back-off."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from numapin_client.errors import ClientError
from numapin_operator.queues.workqueue import WorkQueue


def _without_limit(_: ClientError) -> float:
    """The back-off of a key grows as far as the queue lets it."""
    return math.inf


@dataclass(frozen=True, slots=True)
class Work:
    """The work on the keys of a queue; any number of tasks may run it.

    Attributes:
        queue: the keys that wait.
        step: works on one key.
        failed: called after an error of the API server, with the seconds until the key's next try.
        broken: called after any other error, which is a defect: other keys must go on. It must not
            raise.
        most_seconds: how long a key waits at most after an error of the API server.
    """

    queue: WorkQueue
    step: Callable[[str], Awaitable[object]]
    failed: Callable[[str, ClientError, float], object]
    broken: Callable[[str, Exception], object]
    most_seconds: Callable[[ClientError], float] = _without_limit

    async def run(self) -> None:
        """Work until cancelled; the key on which that interrupts the work waits again."""
        queue = self.queue
        while True:
            key = await queue.take()
            try:
                await self.step(key)
            except asyncio.CancelledError:
                queue.add(key)
                queue.done(key)
                raise
            except ClientError as error:
                most_seconds = self.most_seconds(error)
                delay_seconds = queue.failed(key, error.retry_after_seconds, most_seconds)
                self.failed(key, error, delay_seconds)
            except Exception as error:  # noqa: BLE001 - one key must not stop the others
                queue.failed(key)
                self.broken(key, error)
            else:
                queue.done(key)
