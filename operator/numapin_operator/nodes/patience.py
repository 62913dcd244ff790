"""How long a node's enforcer is waited for."""

from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_daemon.clock import Clock
from numapin_operator.policies.status import NodeOutcome, Phase

ENFORCER_SECONDS: Final = 300.0
"""An enforcer that has not answered for so long is not waited for any more."""

_WAITING: Final = (Reason.WAITING_FOR_TOPOLOGY, Reason.WAITING_FOR_ENFORCER)


class Patience:
    """Counts nodes apart whose enforcer does not answer; they are planned and written as before.

    The time is measured since this operator first saw a node wait, so a restart or another leader
    begins again. A policy that is edited meanwhile does not.
    """

    def __init__(self, clock: Clock) -> None:
        """Wait for nobody yet; `clock` measures how long nodes wait."""
        self._clock = clock
        self._since: dict[str, float] = {}

    def judge(self, node: str, outcome: NodeOutcome | None) -> NodeOutcome | None:
        """The outcome on a node, without the wait for an enforcer that does not answer."""
        if outcome is None or outcome.reason not in _WAITING:
            self._since.pop(node, None)
            return outcome
        if not self.is_over(node):
            return outcome
        message = f"{outcome.message}, for {ENFORCER_SECONDS / 60:.0f} minutes"
        return replace(
            outcome, phase=Phase.NOT_SERVED, reason=Reason.NO_ENFORCER.value, message=message
        )

    def is_over(self, node: str) -> bool:
        """Whether a node's enforcer has not answered in time; the first call begins the wait."""
        now = self._clock.monotonic()
        return now >= self._since.setdefault(node, now) + ENFORCER_SECONDS

    def over_at(self, node: str) -> float | None:
        """When the wait for a node will be over; None if there is none, or it is over."""
        since = self._since.get(node)
        if since is None or since + ENFORCER_SECONDS <= self._clock.monotonic():
            return None
        return since + ENFORCER_SECONDS
