"""Keeps what came of each policy, and writes it into the policies' statuses."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from numapin_client.errors import ClientError
from numapin_operator.cluster import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.selection import rank_policies
from numapin_operator.policies.status import NodeOutcome, policy_status, sort_nodes

GATHER_SECONDS: Final = 0.2
"""News of many nodes come in bursts; a status is written once for all that come together."""

RETRY_SECONDS: Final = 2.0

FIRST_LOOK_SECONDS: Final = 60.0
"""How long a status may stay as it was because some node cannot be planned."""

_log = logging.getLogger(__name__)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Reporter:
    """Gathers each node's outcome; one task writes the statuses that change by it."""

    def __init__(self, cluster: Cluster, clock: Callable[[], str] = _now) -> None:
        self._cluster, self._clock = cluster, clock
        self._outcomes: dict[str, NodeOutcome] = {}
        self._looked_at: set[str] = set()
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    def note(self, node: str, outcome: NodeOutcome | None) -> None:
        """Take in what came of a node's governing policy; None where no policy governs it."""
        self._looked_at.add(node)
        before = self._outcomes.get(node)
        if before == outcome:
            return
        if outcome is None:
            self._outcomes.pop(node, None)
        else:
            self._outcomes[node] = outcome
        for one in (before, outcome):
            if one is not None:
                self.policy_changed(one.policy)

    def policy_changed(self, name: str) -> None:
        """This policy's status may have to say something else."""
        self._changed.add(name)
        self._wake.set()

    async def run(self, state: ClusterState, leading: asyncio.Event) -> None:
        """Write statuses as they change, until cancelled; only while leading."""
        await leading.wait()
        await self._first_look(state)
        while True:
            await self._wake.wait()
            await leading.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._wake.clear()
            changed, self._changed = self._changed, set()
            await self.report(state, changed)

    async def _first_look(self, state: ClusterState) -> None:
        """Wait until every node was looked at once: a restart must not look like a change."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                while not state.node_names() <= self._looked_at:  # noqa: ASYNC110
                    await asyncio.sleep(GATHER_SECONDS)

    async def report(self, state: ClusterState, names: set[str]) -> None:
        """Write the statuses of these policies where they say something else now."""
        ranked = {
            node.name: rank_policies(state.policies.values(), node.labels)
            for node in state.nodes.values()
        }
        for name, nodes in sort_nodes(ranked, sorted(names)).items():
            policy = state.policies.get(name)
            if policy is None or policy.leaving:
                continue
            status = policy_status(policy, nodes, self._outcomes, self._clock())
            if status == policy.status:
                continue
            try:
                after = await self._cluster.report_policy(policy, status)
            except ClientError as error:
                self._try_later(name, error)
            else:
                state.policies.put(after)

    def _try_later(self, name: str, error: ClientError) -> None:
        """A newer state of the policy, or the API server, will be there by then."""
        _log.warning(
            "a policy's status could not be written", extra={"policy": name, "error": str(error)}
        )
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self.policy_changed, name)
