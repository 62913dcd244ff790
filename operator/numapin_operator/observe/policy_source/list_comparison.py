"""When the cache of policies is compared with a whole list."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS, Outage

_log = logging.getLogger(__name__)


class ListComparison:
    """Compares the cache with a whole list, once at the start and then on request.

    Attributes:
        done: set once the first comparison has succeeded, and never cleared.
        outage: why comparisons fail, and since when; None if the last one succeeded.
    """

    def __init__(self, compare: Callable[[], Awaitable[None]], clock: Clock | None = None) -> None:
        """Compare nothing yet.

        Args:
            compare: lists the policies and puts the list into the cache; may raise ClientError.
            clock: the machine's clock by default.
        """
        self._compare = compare
        self.done = asyncio.Event()
        self.outage: Outage | None = None
        self._clock = clock or SystemClock()
        self._worker = Worker(
            "list comparison",
            self._work,
            expected=(ClientError,),
            failure="",
            backoff=Backoff(cap_seconds=LONGEST_BACKOFF_SECONDS),
            clock=self._clock,
        )
        self._worker.request()

    def request(self) -> None:
        """Compare once more."""
        self._worker.request()

    async def run(self) -> None:
        """Compare when requested, until cancelled; a failure is retried."""
        await self._worker.run()

    async def _work(self) -> None:
        try:
            await self._compare()
        except ClientError as error:
            if self.outage is None or self.outage.why != str(error):
                _log.warning("cannot list policies", extra={"error": str(error)})
            since = self.outage.since if self.outage else self._clock.monotonic()
            self.outage = Outage(since, str(error))
            raise
        self.outage = None
        self.done.set()
