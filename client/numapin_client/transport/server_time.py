"""The API server's date and time, by the Date header of its answers.

Whoever compares a time in an object with a clock must mean the clock by which it was written.
Operators on several machines have several clocks, of which one may be wrong or be set; the API
server is one for all of them.
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from numapin_daemon.clock import SystemClock

RESOLUTION_SECONDS: Final = 1.0
"""Source: RFC 9110, section 6.6.1: Date has whole seconds."""


class ServerTime:
    """Between which two times the server's clock is, by all its answers that agree.

    An answer that contradicts them begins again: the clock was set, or another server answered.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._least = self._most = 0.0  # seconds since 1970 at 0 of the monotonic clock
        self._is_known = False

    def note(self, date: str | None, sent: float, received: float) -> None:
        """Take in an answer.

        Args:
            date: its Date header; one that is missing or no date counts for nothing.
            sent: when the request was sent, by the monotonic clock.
            received: when the answer came.
        """
        try:
            seconds = parsedate_to_datetime(date or "").timestamp()
        except ValueError:
            return
        least, most = seconds - received, seconds + RESOLUTION_SECONDS - sent
        if self._is_known and least <= self._most and most >= self._least:
            least, most = max(least, self._least), min(most, self._most)
        self._least, self._most, self._is_known = least, most, True

    def now(self, monotonic: float) -> datetime | None:
        """The server's time, or up to a second and a round trip less; None if it is not known."""
        if not self._is_known:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=self._least + monotonic)


class ServerClock(SystemClock):
    """The machine's clock with the API server's date and time, once that has answered."""

    def __init__(self, server: ServerTime) -> None:
        """Ask `server` for the date and time."""
        self._server = server

    def now(self) -> datetime:
        """The API server's date and time in UTC; the machine's until it is known."""
        return self._server.now(self.monotonic()) or super().now()
