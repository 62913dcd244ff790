"""What happens to the cluster itself during a hostile run, beside what the authors do."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from numapin_api import names
from numapin_campaigns.hostile.invariants import Checks
from numapin_campaigns.hostile.stage import Stage
from numapin_client.resources import LEASES, NODE_ASSIGNMENTS, NODES, Json, Key
from numapin_daemon.clock import SystemClock
from numapin_lab.played.control_plane import LargePlane

LEASE: Final = Key(names.LEADER_LEASE, names.NAMESPACE)
THIEF: Final = "another-replica"
STOLEN_SECONDS: Final = 3.0
OUTAGE_SECONDS: Final = 14.0
"""Longer than the leader may go on without a renewal."""

AWAY_SECONDS: Final = 3.0
"""Between the deletion of a Node and its next registration, as by a kubelet that is restarted."""


@dataclass
class Disturbances:
    """Replaced API servers, outages, a lead that is lost and won, Nodes and assignments deleted.

    Attributes:
        done: how often each happened.
        slowest_recovery: seconds from the end of an outage until the operator led again, at most.
    """

    plane: LargePlane
    stage: Stage
    checks: Checks
    done: dict[str, int] = field(default_factory=dict)
    slowest_recovery: float = 0.0
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by what takes the API server or the lead away, until that is over: a lead that is stolen
    just after an outage would count as a slow recovery."""

    async def every(self, seconds: float, disturb: Callable[[], Awaitable[None]]) -> None:
        """Repeat one disturbance until cancelled; 0 seconds: never."""
        while seconds:
            await asyncio.sleep(seconds)
            await self.checks.when_possible(disturb)

    def _count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    async def replace_server(self) -> None:
        """Another API server takes over, and answers every watch with 410."""
        async with self._one:
            await asyncio.to_thread(self.plane.replace_apiserver)
        self._count("API server replaced")

    async def outage(self) -> None:
        """No API server answers for a while; then the operator must lead again soon."""
        async with self._one:
            async with self.checks.excused():
                await asyncio.to_thread(self.plane.interrupt_apiserver, OUTAGE_SECONDS)
                answers_since = time.monotonic()
            self._count("outage")
            if await self.checks.until_leading():
                recovery = time.monotonic() - answers_since
                self.slowest_recovery = max(self.slowest_recovery, recovery)

    async def steal_lead(self) -> None:
        """Another replica takes the Lease, and gives it back."""
        async with self._one:
            await self._steal_lead()

    async def _steal_lead(self) -> None:
        api, now = self.stage.api, SystemClock().now_text(microseconds=True)
        held = {"holderIdentity": THIEF, "acquireTime": now, "renewTime": now}
        await api.merge_patch(LEASES, LEASE, {"spec": held})
        await asyncio.sleep(STOLEN_SECONDS)
        lease = await api.get(LEASES, LEASE)
        if lease["spec"].get("holderIdentity") == THIEF:
            await api.merge_patch(LEASES, LEASE, {"spec": {"holderIdentity": ""}})
        self._count("lead lost and won")

    async def delete_assignment(self) -> None:
        """An administrator deletes the NodeAssignment of a control node, to have it made again."""
        await self.stage.api.delete(NODE_ASSIGNMENTS, self._next_control("NodeAssignment deleted"))

    async def register_again(self) -> None:
        """A control node is deleted and registered again; its pods and containers stay."""
        key = self._next_control("Node registered again")
        node = await self.stage.api.get(NODES, key)
        await self.stage.api.delete(NODES, key)
        await asyncio.sleep(AWAY_SECONDS)
        await self.stage.add_node(key.name, node["metadata"]["labels"]["role"])

    def _next_control(self, what: str) -> Key:
        self._count(what)
        control = self.stage.cast.control
        return Key(control[self.done[what] % len(control)])

    def figures(self) -> Json:
        """What happened, for the report."""
        return {
            "disturbances": self.done,
            "slowestRecoverySeconds": round(self.slowest_recovery, 1),
        }


class Disturbance(NamedTuple):
    """The seconds between two of a kind, what it does, and that for people."""

    seconds: float
    disturb: Callable[[Disturbances], Awaitable[None]]
    meaning: str


DISTURBANCES: Final = {
    "replace-seconds": Disturbance(
        360.0, Disturbances.replace_server, "another API server takes over"
    ),
    "outage-seconds": Disturbance(
        290.0, Disturbances.outage, f"none answers for {OUTAGE_SECONDS:.0f} s"
    ),
    "steal-seconds": Disturbance(20.0, Disturbances.steal_lead, "the lead is lost and won"),
    "delete-seconds": Disturbance(
        45.0, Disturbances.delete_assignment, "a NodeAssignment is deleted"
    ),
    "register-seconds": Disturbance(
        65.0, Disturbances.register_again, "a Node is registered again"
    ),
}
"""By the name of the option."""
