"""Collects the outcome on each node, and writes the policies' statuses."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from numapin_client.errors import ClientError, ConflictError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.slices import Slices
from numapin_daemon.worker import Worker
from numapin_operator.cluster import Cluster
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.contact import longest_backoff_seconds
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.revisions import Revision
from numapin_operator.policies.in_force import followed, is_of
from numapin_operator.policies.revisions import store_revision
from numapin_operator.policies.sharing.claims import Reported, Sharing
from numapin_operator.policies.status import (
    NodeOutcome,
    PolicyNodes,
    has_reached_all,
    policy_status,
)
from numapin_operator.policies.tally import Tally
from numapin_operator.telemetry.states import NodesState

GATHER_SECONDS: Final = 0.2
"""Outcomes of many nodes come in bursts; a status is written once for each burst."""

FIRST_PLAN_SECONDS: Final = 60.0
"""How long a status may stay unchanged because some node cannot be planned."""

_log = logging.getLogger(__name__)


class StatusWriter:
    """Collects each node's outcome; a background task writes the statuses that it changes.

    Attributes:
        sharing: how the counts of several operators meet; None if this one counts all nodes.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        leading: asyncio.Event,
        clock: Clock | None = None,
    ) -> None:
        """Write nothing yet; have `state` report what changes from now on.

        Args:
            cluster: where statuses are written.
            state: the policies and nodes that they are about, as known by now.
            leading: set while this operator may write.
            clock: the machine's clock by default.
        """
        self._cluster, self._state, self._leading = cluster, state, leading
        self._clock = clock or SystemClock()
        self.sharing: Sharing | None = None
        self._tally = Tally()
        self._planned: set[str] = set()
        self._all_planned = False
        self._to_rank = set(state.nodes)
        self._changed = set(state.policies)
        self._backoffs: dict[str, Backoff] = {}
        self._retry_at: dict[str, float] = {}
        self._worker = Worker("policy statuses", self._work, clock=self._clock)
        self._worker.request()
        state.policy_changed, state.ranking_changed = self.policy_changed, self.ranking_changed

    def state(self) -> NodesState:
        """How far the policies have come; may be called in any thread."""
        return self._tally.state()

    def set_outcome(self, node: str, outcome: NodeOutcome | None) -> None:
        """Take in the outcome of a node's governing policy; None if no policy governs it."""
        if not self._all_planned:
            self._planned.add(node)
        for policy in self._tally.judge(node, outcome):
            self.policy_changed(policy)

    def ranking_changed(self, nodes: AbstractSet[str]) -> None:
        """Take in nodes whose policies, or their order, may differ now.

        A new policy changes all nodes at once; they are counted later, in slices.
        """
        self._to_rank |= nodes
        self._worker.request()

    def policy_changed(self, name: str) -> None:
        """Have this policy's status written if it differs."""
        self._changed.add(name)
        self._worker.request()

    async def run(self) -> None:
        """Write statuses as they change, until cancelled; only while leading."""
        await self._worker.run()

    async def _work(self) -> float | None:
        if not (self._changed or self._to_rank):
            return None  # the last run gathered what was requested meanwhile
        await self._leading.wait()
        await self._wait_for_first_plans()
        await self._clock.sleep(GATHER_SECONDS)
        await self._rank_nodes()
        due = self._due()
        self._changed -= due
        try:
            due = await self.write(due)
        finally:
            self._changed |= due
        now = self._clock.monotonic()
        waits = [self._retry_at.get(name, now) - now for name in self._changed]
        return max(0.0, min(waits)) if waits else None

    def _due(self) -> set[str]:
        """What has changed, without the policies whose last write failed a moment ago."""
        now = self._clock.monotonic()
        return {name for name in self._changed if self._retry_at.get(name, now) <= now}

    async def _wait_for_first_plans(self) -> None:
        """Wait until every node was planned once: a restart must not look like a change."""
        if self._all_planned:
            return
        deadline = self._clock.monotonic() + FIRST_PLAN_SECONDS
        while not self._state.node_names() <= self._planned and self._clock.monotonic() < deadline:
            await self._clock.sleep(GATHER_SECONDS)
        self._all_planned = True
        self._planned.clear()

    async def _rank_nodes(self) -> None:
        slices = Slices(self._clock)
        while self._to_rank:
            node = self._to_rank.pop()
            self._changed |= self._tally.rank(node, self._state.ranking_of(node))
            await slices.rest()

    async def write(self, names: Iterable[str]) -> set[str]:
        """Write the statuses of these policies where they differ.

        Returns:
            The policies whose status must be written again later.
        """
        failed: set[str] = set()
        slices = Slices(self._clock)
        for name in sorted(names):
            await slices.rest()
            try:
                await self._write_one(name)
            except ClientError as error:
                failed.add(name)
                wait_seconds = self._postpone(name, error)
                if self.sharing is not None and isinstance(error, ConflictError):
                    continue  # another operator has written its part; the watch shows it soon
                _log.warning(
                    "cannot write a policy's status",
                    extra={
                        "policy": name,
                        "error": str(error),
                        "again_in_seconds": round(wait_seconds, 1),
                    },
                )
            except Exception:  # noqa: BLE001 - one policy must not stop the others
                failed.add(name)
                self._postpone(name)
                _log.exception("cannot compute a policy's status", extra={"policy": name})
            else:
                self._backoffs.pop(name, None)
                self._retry_at.pop(name, None)
        return failed

    def _postpone(self, name: str, error: ClientError | None = None) -> float:
        """Have a status that failed wait for its back-off, whatever is new; how long that is."""
        backoff = self._backoffs.setdefault(name, Backoff())
        asked_seconds = error.retry_after_seconds if error else None
        wait_seconds = backoff.next_seconds(asked_seconds, longest_backoff_seconds(error))
        self._retry_at[name] = self._clock.monotonic() + wait_seconds
        return wait_seconds

    async def _write_one(self, name: str) -> None:
        await self._rank_nodes()
        policy = self._state.policies.get(name)
        if policy is None or policy.deleting:
            return
        nodes = self._tally.summary(name, policy.generation, policy.uid)
        shared, is_elsewhere = self._shared(policy, nodes)
        nodes = nodes if shared is None else shared.nodes
        status, failure = policy_status(policy, nodes, self._clock.now_text()), None
        if (done := self._reached(policy, nodes, is_elsewhere)) is not None:
            try:
                revision = await store_revision(self._cluster, self._state.revisions, done)
            except ClientError as error:
                failure = error
            else:
                said = {"rolled_out": None, "current_revision": revision}
                status = status.model_copy(update=said)
        if shared is not None:
            status = status.model_copy(update={"shards": shared.parts})
        if status != policy.status or (self.sharing and self.sharing.is_unsure(name)):
            after = await self._cluster.replace_policy_status(policy, status)
            self._state.policies.put(after)  # its spec is still that of `policy`
            if self.sharing is not None:
                self.sharing.written(name)
        if self.sharing is not None:
            self.sharing.call(name)
        if failure is not None:
            raise failure

    def _shared(
        self, policy: PolicyView, nodes: PolicyNodes
    ) -> tuple[Reported | None, Callable[[], bool]]:
        """What several shards report, and whether the policy is in force elsewhere."""
        if self.sharing is None:
            return None, lambda: self._is_elsewhere(policy)
        shared = self.sharing.reported(policy, nodes, is_elsewhere=self._is_elsewhere(policy))
        return shared, lambda: any(one.elsewhere for one in shared.parts)

    def _reached(
        self, policy: PolicyView, nodes: PolicyNodes, is_elsewhere: Callable[[], bool]
    ) -> Revision | None:
        """The newest generation of a policy that has reached every node; None if none is known.

        Of several operators one stores it.
        """
        if self.sharing is not None and self.sharing.shard != 0:
            return None
        before = self._state.revisions.newest(policy)
        if before is not None and before.generation == policy.generation:
            return before
        if not has_reached_all(policy, nodes) or is_elsewhere():
            return before
        return Revision.of(policy)

    def _is_elsewhere(self, policy: PolicyView) -> bool:
        """Whether a policy is in force on a node that it does not govern.

        Such a node waits for the turn of another policy, or for its release. It has not followed
        the newest generation, and may come back.
        """
        governed = self._state.governed_nodes(policy.name)
        return any(
            (following := followed(one)) is not None
            and is_of(following, policy)
            and one.name not in governed
            for one in self._state.assignments.values()
        )
