"""How long a node's enforcer is waited for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_daemon.clock import Clock
from numapin_daemon.worker import Worker
from numapin_operator.policies.status import NodeOutcome, Phase

ENFORCER_SECONDS: Final = 300.0
"""An enforcer that has not answered for so long is not waited for any more."""

_WAITING: Final = (Reason.WAITING_FOR_TOPOLOGY, Reason.WAITING_FOR_ENFORCER)


class Patience:
    """Counts nodes apart whose enforcer does not answer; they are planned and written as before.

    The time is measured since this operator first saw a node wait, so a restart begins again. A
    policy that is edited meanwhile does not.
    """

    def __init__(self, wake: Callable[[str], object], clock: Clock) -> None:
        """Wait for nobody yet.

        Args:
            wake: called with each node whose time is over.
            clock: measures how long nodes wait.
        """
        self._wake, self._clock = wake, clock
        self._since: dict[str, float] = {}  # the longest wait first
        self._over: set[str] = set()
        self._worker = Worker("waiting for enforcers", self._work, clock=clock)

    def judge(self, node: str, outcome: NodeOutcome | None) -> NodeOutcome | None:
        """The outcome on a node, without the wait for an enforcer that does not answer."""
        if outcome is None or outcome.reason not in _WAITING:
            self._since.pop(node, None)
            self._over.discard(node)
            return outcome
        if not self.is_over(node):
            return outcome
        message = f"{outcome.message}, for {ENFORCER_SECONDS / 60:.0f} minutes"
        return replace(
            outcome, phase=Phase.NOT_SERVED, reason=Reason.NO_ENFORCER.value, message=message
        )

    def is_over(self, node: str) -> bool:
        """Whether a node's enforcer has not answered in time; the first call begins the wait."""
        if node in self._over:
            return True
        if node not in self._since:
            self._since[node] = self._clock.monotonic()
            if len(self._since) == 1:
                self._worker.request()
        return False

    async def run(self) -> None:
        """Wake the nodes whose time is over, until cancelled."""
        await self._worker.run()

    async def _work(self) -> float | None:
        now = self._clock.monotonic()
        while self._since:
            node, since = next(iter(self._since.items()))
            if (left := since + ENFORCER_SECONDS - now) > 0:
                return left
            del self._since[node]
            self._over.add(node)
            self._wake(node)
        return None
