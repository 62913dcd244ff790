"""Which enforcers have been silent for too long, by our own clock. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

GAP_SECONDS: Final = 30.0
"""If no Lease was renewed for so long, it is not the enforcers that stopped: the API server, or
the network, was away. Two enforcers that run renew more often (`RENEW_SECONDS` is 20)."""

SHORTEST_SECONDS: Final = 30.0
"""A Lease lasts at least so long, whatever it says."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One renewal of a Lease.

    Attributes:
        version: the resourceVersion of the Lease.
        renewed: when it was renewed, by the clock of the node: for people, never compared.
        lasts_seconds: after how long without another renewal the enforcer counts as silent.
    """

    version: str
    renewed: str
    lasts_seconds: float

    @classmethod
    def decode(cls, body: Mapping[str, Any]) -> Self:
        """Read a Lease; what is missing in it is as if the enforcer had said the least."""
        spec = body.get("spec") or {}
        return cls(
            version=str(body["metadata"]["resourceVersion"]),
            renewed=str(spec.get("renewTime") or "an unknown time"),
            lasts_seconds=max(SHORTEST_SECONDS, float(spec.get("leaseDurationSeconds") or 0)),
        )


@dataclass(frozen=True, slots=True)
class Heard:
    """The last renewal of a node, when it counts as heard, and whether silence is reported."""

    beat: Beat
    at: float
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Listening:
    """What was heard since a term began. A new one has heard nothing: every node gets its time.

    Times are of our own monotonic clock: the clocks of nodes are never compared.

    Attributes:
        now: when the Leases were last looked at.
        nodes: by node, its last renewal.
        newest: when any node was last heard.
    """

    now: float
    nodes: Mapping[str, Heard] = field(default_factory=dict)
    newest: float = 0.0

    def look(self, beats: Mapping[str, Beat], now: float) -> "Listening":
        """Take in all Leases as they are now.

        If this program or all renewals stood still for `GAP_SECONDS`, every node gets its time
        again.
        """
        changed = {
            name: Heard(beat, now)
            for name, beat in beats.items()
            if (known := self.nodes.get(name)) is None or known.beat != beat
        }
        nodes = {name: changed.get(name) or self.nodes[name] for name in beats}
        seen = Listening(now, nodes, now if changed else self.newest)
        stood_still = now - self.now > GAP_SECONDS
        return seen.again() if stood_still or (changed and self._is_gap(now)) else seen

    def again(self) -> "Listening":
        """Give every node its time again: nothing could be heard until now."""
        nodes = {name: replace(one, at=self.now) for name, one in self.nodes.items()}
        return replace(self, nodes=nodes, newest=self.now)

    def done(self, node: str) -> "Listening":
        """This silence of a node needs no more report."""
        return replace(self, nodes={**self.nodes, node: replace(self.nodes[node], is_done=True)})

    def silent(self) -> tuple[str, ...]:
        """The nodes whose silence must be reported.

        Time counts only while others are heard: if all stop at once, nobody is silent. A cluster
        with one Lease has no others.
        """
        until = self.newest if len(self.nodes) > 1 else self.now
        return tuple(
            name
            for name, one in self.nodes.items()
            if not one.is_done and until - one.at >= one.beat.lasts_seconds
        )

    def _is_gap(self, now: float) -> bool:
        return len(self.nodes) > 1 and now - self.newest > GAP_SECONDS
