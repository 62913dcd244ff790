"""A right that the operator's role may lack: nothing is tried for a while after it did."""

import logging
from collections.abc import Callable
from typing import Final

from numapin_client.errors import ClientError, ForbiddenError
from numapin_daemon.clock import Clock

DENIED_SECONDS: Final = 60.0
"""How long nothing is written after the role lacked the right."""

_log = logging.getLogger(__name__)


class Denied:
    """Whether the right was denied lately; says once what is missing, and when that is over."""

    def __init__(
        self,
        missing: str,
        restored: str,
        clock: Clock,
        is_denied: Callable[[ClientError], bool] | None = None,
    ) -> None:
        """Know of no failure yet.

        Args:
            missing: what is logged when it is denied.
            restored: what is logged when it is allowed again.
            clock: measures every time.
            is_denied: which failures count; by default those of a missing right.
        """
        self._missing, self._restored, self._clock = missing, restored, clock
        self._is_denied = is_denied or lacks_right
        self._until: float | None = None

    def __bool__(self) -> bool:
        return self._until is not None and self._until > self._clock.monotonic()

    def note(self, error: ClientError) -> bool:
        """Take in a failure; returns whether it counts."""
        if not self._is_denied(error):
            return False
        if self._until is None:
            _log.error(self._missing, extra={"error": str(error)})
        self._until = self._clock.monotonic() + DENIED_SECONDS
        return True

    def note_allowed(self) -> None:
        """A write has succeeded."""
        if self._until is not None:
            _log.info(self._restored)
        self._until = None

    async def wait(self) -> None:
        """Wait until the right may be tried again."""
        while self:
            assert self._until is not None
            await self._clock.sleep(self._until - self._clock.monotonic())


def lacks_right(error: ClientError) -> bool:
    """Whether it was RBAC that refused, and no webhook."""
    return isinstance(error, ForbiddenError) and error.lacks_right
