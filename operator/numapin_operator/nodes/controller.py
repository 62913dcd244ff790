"""Bring each node's assignment to what it should be: read all, decide, write once, tell."""

import asyncio
import logging
from typing import Final

from numapin_client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.decide import Decision, NodePicture, Write, decide
from numapin_operator.nodes.eviction import Evictor
from numapin_operator.nodes.refusal_events import Teller, fresh_refusals
from numapin_operator.nodes.workqueue import WorkQueue
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import AssignmentView
from numapin_operator.policies.selection import mark_selected, rank_policies
from numapin_operator.policies.status import stalled
from numapin_operator.policies.status_writer import Reporter

ATTEMPTS: Final = 5
"""How often a write that came too late is planned anew at once, before the node has to wait."""

FATES: Final = {"Share": "it runs in the shared pool", "Evict": "it is evicted"}

_STALE: Final = (AlreadyExistsError, ConflictError, NotFoundError)

_HOPELESS: Final = (InvalidError, ForbiddenError)
"""Refusals that somebody has to see: the CRDs or the rights are not those of this operator."""

_log = logging.getLogger(__name__)


class Controller:
    """Plans and writes, one node at a time for each worker."""

    def __init__(
        self, cluster: Cluster, state: ClusterState, queue: WorkQueue, reporter: Reporter
    ) -> None:
        self._cluster, self._state = cluster, state
        self._queue, self._reporter = queue, reporter
        self.teller, self.evictor = Teller(cluster), Evictor(cluster)

    async def work(self, leading: asyncio.Event) -> None:
        """Take node after node off the queue until cancelled; writes only while leading."""
        while True:
            name = await self._queue.take()
            await leading.wait()
            try:
                await self.reconcile(name)
            except ClientError as error:
                delay = self._queue.failed(name)
                _log.warning(
                    "a node's assignment could not be written",
                    extra={"node": name, "error": str(error), "again_in_seconds": round(delay, 1)},
                )
            else:
                self._queue.done(name)

    async def reconcile(self, name: str) -> None:
        """Bring one node up to date; one that changed in between is read again and planned anew.

        Raises:
            ClientError: it cannot be written now.
        """
        for attempt in range(1, ATTEMPTS + 1):
            picture = self._look(name)
            decision = decide(picture)
            try:
                await self._write(picture, decision)
            except _STALE:
                if attempt == ATTEMPTS:
                    raise
                await self._read_again(name)
            except _HOPELESS as error:
                if picture.ranked:
                    outcome = stalled(picture.ranked[0], name, error.reason, str(error))
                    self._reporter.note(name, outcome)
                raise
            else:
                self._reporter.note(name, decision.outcome)
                self._evict(picture)
                return

    def _look(self, name: str) -> NodePicture:
        state = self._state
        node = state.nodes.get(name)
        ranked = rank_policies(state.policies.values(), node.labels) if node else ()
        pods = tuple(state.pods_on(name))
        if ranked:
            pods = mark_selected(ranked[0].spec.pods, pods, state.namespaces)
        return NodePicture(name, node, ranked, state.assignments.get(name), pods)

    async def _write(self, picture: NodePicture, decision: Decision) -> None:
        before, node = picture.assignment, picture.node
        if decision.write is Write.NOTHING:
            return
        if decision.write is Write.DELETE:
            assert before is not None
            await self._cluster.delete_assignment(before)
            self._state.assignments.drop(before.name, before.version)
            _log.info("deleted an assignment", extra={"node": picture.name})
            return
        assert node is not None
        assert decision.spec is not None
        if before is None:
            after = await self._cluster.create_assignment(node, decision.spec)
        else:
            after = await self._cluster.replace_spec(before, node, decision.spec)
        self._state.assignments.put(after)
        fresh = fresh_refusals(before.spec.refused if before else (), after.spec.refused)
        self.teller.offer(fresh, FATES["Evict" if _evicts(picture) else "Share"])
        self._log_write(after)

    def _evict(self, picture: NodePicture) -> None:
        """Have the refused pods that are still there evicted, where the policy says so."""
        assignment = self._state.assignments.get(picture.name)
        if assignment is not None and _evicts(picture):
            there = {pod.uid for pod in picture.pods if not pod.leaving and not pod.terminal}
            self.evictor.offer(one for one in assignment.spec.refused if one.pod_uid in there)

    def _log_write(self, after: AssignmentView) -> None:
        _log.info(
            "wrote an assignment",
            extra={
                "node": after.name,
                "generation": after.generation,
                "mode": after.spec.mode,
                "containers": len(after.spec.containers),
                "refused": len(after.spec.refused),
            },
        )

    async def _read_again(self, name: str) -> None:
        """Replace what we hold by what there is: our watch is behind, or another one wrote."""
        fresh = await self._cluster.read_assignment(name)
        held = self._state.assignments.get(name)
        if fresh is not None:
            if held is not None and held.uid != fresh.uid:
                self._state.assignments.drop(name, held.version)
            self._state.assignments.put(fresh)
        elif held is not None:
            self._state.assignments.drop(name, held.version)


def _evicts(picture: NodePicture) -> bool:
    return bool(picture.ranked) and picture.ranked[0].spec.on_unsatisfiable == "Evict"
