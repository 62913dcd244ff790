"""Notice an API server that has returned to an older state, as after a restore of etcd."""

import logging
from collections.abc import Awaitable, Callable

from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS

_log = logging.getLogger(__name__)


class HistoryCheck:
    """Compares the server's version of one kind with the one that was seen, on request.

    A watch from a version that the server has not reached yet delivers nothing up to there, and a
    cache takes older versions for late ones. An informer notices such a server by itself; for what
    comes through kopf, it is noticed here.
    """

    def __init__(
        self,
        seen: Callable[[], int],
        read: Callable[[], Awaitable[int]],
        returned: Callable[[], object],
        clock: Clock | None = None,
    ) -> None:
        """Check nothing yet.

        Args:
            seen: the newest resourceVersion that has been taken in.
            read: the one that a list would show now, from etcd; may raise ClientError.
            returned: called when the server has returned to an older state.
            clock: the machine's clock by default.
        """
        self._seen, self._read, self._returned = seen, read, returned
        self._worker = Worker(
            "history check",
            self._check,
            expected=(ClientError,),
            failure="cannot compare the API server's state with what was seen",
            backoff=Backoff(cap_seconds=LONGEST_BACKOFF_SECONDS),
            clock=clock or SystemClock(),
        )

    def request(self) -> None:
        """Check once more; to be called whenever a watch has connected."""
        self._worker.request()

    async def run(self) -> None:
        """Check when requested, until cancelled; a failure is retried."""
        await self._worker.run()

    async def _check(self) -> None:
        seen = self._seen()  # before the server is asked: it may go on meanwhile
        now = await self._read()
        if now < seen:  # Source: KEP-5504 (versions of one resource may be compared)
            _log.warning(
                "the API server returned to an older state, listing again",
                extra={"ours": seen, "theirs": now},
            )
            self._returned()
