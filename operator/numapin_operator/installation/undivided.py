"""An operator that leads all nodes, after operators that shared them (numapin_operator.shards).

Its Lease is that of shard 0. Who leads another shard stops once it has read that somebody leads
without shards, or that it cannot be read for so long as a lead lasts.
"""

from typing import Final

from numapin_api import names
from numapin_client.resources import Json
from numapin_daemon.clock import Clock

DIVISION: Final = f"{names.GROUP}/shards"
"""On the Lease of shard 0: into how many shards the operators divide the nodes that may write."""


class Undivided:
    """Whether operators that shared the nodes may still lead.

    The mark on the Lease stays until they do not, so that whoever takes the Lease meanwhile waits
    as well.
    """

    def __init__(self, clock: Clock, lease_seconds: float) -> None:
        """Know of nothing yet.

        Args:
            clock: measures how long the Lease has been ours.
            lease_seconds: for so long an operator may lead that cannot read the Lease, or longer.
        """
        self._clock, self._lease_seconds = clock, lease_seconds
        self._held_since: float | None = None

    def must_wait(self, lease: Json | None, *, is_ours: bool) -> bool:
        """Whether nothing may be written yet, with the Lease as last seen."""
        if not is_ours:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = self._clock.monotonic()
        return _divided(lease or {})

    def unmarked(self, lease: Json) -> Json:
        """The Lease as it may be written now: without the mark when the wait is over."""
        since = self._held_since
        is_over = since is not None and self._clock.monotonic() - since >= self._lease_seconds
        if not (_divided(lease) and is_over):
            return lease
        kept = dict(lease["metadata"]["annotations"])
        del kept[DIVISION]
        return lease | {"metadata": lease["metadata"] | {"annotations": kept}}


def _divided(lease: Json) -> bool:
    annotations = (lease.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(DIVISION, "1")) != "1"
