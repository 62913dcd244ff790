"""Bring each node's assignment to what it should be: read the state, decide, write once."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_operator.api_server import Cluster
from numapin_operator.nodes.absence import Absences, BehindError
from numapin_operator.nodes.claims import Claims
from numapin_operator.nodes.decide import Decision, NodePicture, Write, decide
from numapin_operator.nodes.evictable import consequence
from numapin_operator.nodes.moves.notices import notices_of_moves
from numapin_operator.nodes.notices import notice_of_waiting, notices_of_written
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.nodes.patience import Patience
from numapin_operator.nodes.picture import picture_of, pods_on
from numapin_operator.nodes.refusal_events import (
    KEEPS,
    fresh_refusals,
    fresh_waits,
)
from numapin_operator.nodes.release_delay import ReleaseDelays
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.contact import longest_backoff_seconds
from numapin_operator.observe.records import AssignmentView
from numapin_operator.placement import PodView
from numapin_operator.policies.rollout import Rollout, Turn
from numapin_operator.policies.status import stalled, waiting_for_turn
from numapin_operator.queues.work import Work
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import PLAN_SECONDS, REFUSALS, WRITES
from numapin_operator.telemetry.write_results import PERMANENT, STALE, result_of

ATTEMPTS: Final = 5
"""How often a stale write is planned again at once, before the node has to wait."""

INTERNAL_ERROR: Final = "the operator cannot plan this node, its log has the traceback"

_log = logging.getLogger(__name__)


class Controller:
    """Plans and writes, one node at a time for each worker."""

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        queue: WorkQueue,
        outputs: Outputs,
        clock: Clock | None = None,
    ) -> None:
        """Plan nothing yet; `queue` must have the same clock."""
        self._cluster, self._state, self._clock = cluster, state, clock or SystemClock()
        self._queue, self._outputs = queue, outputs
        self._absences = Absences(cluster, state, self._clock)
        self._claims = Claims(cluster, self._clock)
        self.patience = Patience(self._clock)
        self.rollout = Rollout(queue.add, state)
        self.release_delays = ReleaseDelays(self._clock)
        self._defects: dict[str, str] = {}
        self._told: dict[str, frozenset[str]] = {}
        """The pods of each node that wait."""

    async def work(self, leading: asyncio.Event) -> None:
        """Reconcile node after node from the queue, until cancelled; only while leading."""

        async def step(name: str) -> None:
            await leading.wait()
            await self.reconcile(name)
            self._defects.pop(name, None)

        failed, most_seconds = self._outputs.log.failed, longest_backoff_seconds
        await Work(self._queue, step, failed, self._isolate, most_seconds).run()

    def _isolate(self, name: str, error: Exception) -> None:
        """Stall one node after a defect.

        The traceback is logged when the error differs from the node's last one.
        """
        if self._defects.get(name) == repr(error):
            return
        self._defects[name] = repr(error)
        _log.error("cannot plan a node", extra={"node": name}, exc_info=error)
        try:
            self._stall(name, Reason.INTERNAL_ERROR, f"{INTERNAL_ERROR}: {error!r}")
        except Exception as second:  # noqa: BLE001 - what is wrong may be the policies themselves
            _log.error("cannot report a stalled node", extra={"node": name}, exc_info=second)

    def _stall(self, name: str, reason: Reason, message: str) -> None:
        """Report on the governing policy that this node cannot be served."""
        if governing := self._state.governing(name):
            outcome = stalled(governing, name, reason, message)
            self.rollout.stall(name)
            self._outputs.statuses.set_outcome(name, outcome)

    async def reconcile(self, name: str) -> None:
        """Bring one node up to date; if it changed in between, read it and plan it again.

        Raises:
            ClientError: its assignment cannot be written now.
        """
        for attempt in range(1, ATTEMPTS + 1):
            late = await self._confirm_absences(name)
            turn, picture = self._picture(name, late)
            if await self._claims.read(picture):
                turn, picture = self._picture(name, late)
            began_seconds = self._clock.monotonic()
            decision = self._decide(picture)
            try:
                await self._write(picture, decision, began_seconds)
            except STALE:
                if attempt == ATTEMPTS:
                    raise
                await self._read_again(name)
            except PERMANENT as error:
                self._stall(name, error.reason, str(error))
                raise
            else:
                self._outputs.telling.tell(name)
                self._tell_waiting(name, decision)
                self._settle(name, turn, decision)
                self._look_again(name, decision)
                self._outputs.evictor.offer(name)
                if late:
                    raise BehindError(f"Pod {pod.namespace}/{pod.name}" for pod in late)
                return

    def _decide(self, picture: NodePicture) -> Decision:
        began_seconds = self._clock.monotonic()
        decision = decide(picture)
        self._outputs.meter.observe(PLAN_SECONDS, self._clock.monotonic() - began_seconds)
        return decision

    def _picture(self, name: str, late: Sequence[PodView]) -> tuple[Turn, NodePicture]:
        """What a decision depends on, by the policy whose turn it is on the node."""
        self.rollout.admit(name)
        turn = self.rollout.turn(name)
        picture = picture_of(self._state, name, late, turn.policy)
        picture = replace(picture, pods=self._claims.mark(name, picture.pods))
        release_at = self.release_delays.release_at(picture)
        now, told = self._clock.now().timestamp(), self._outputs.telling.told(name)
        picture = replace(picture, release_at=release_at, now=now, told=told)
        return turn, replace(picture, stays_until=self._absences.stays_until(picture))

    def _look_again(self, name: str, decision: Decision) -> None:
        """Have the node planned again when time alone changes what is decided."""
        times = [part.over_at(name) for part in (self.release_delays, self.patience)]
        times.append(self._claims.again_at(name))
        if decision.again_at is not None:
            left_seconds = max(0.0, decision.again_at - self._clock.now().timestamp())
            times.append(self._clock.monotonic() + left_seconds)
        if due := [time for time in times if time is not None]:
            self._queue.add(name, at=min(due))

    def _settle(self, name: str, turn: Turn, decision: Decision) -> None:
        """Report what became of the governing policy on a node, or that it is not released."""
        outcome = decision.outcome
        if decision.releasing:
            if self.patience.is_over(name):
                self._outputs.log.not_released(name)
        elif not turn.wait:
            outcome = self.patience.judge(name, outcome)
        self.rollout.settle(name, turn, outcome)
        governing = self._state.governing(name)
        if turn.wait and governing is not None:
            outcome = waiting_for_turn(governing, name, turn.wait, outcome)
        self._outputs.statuses.set_outcome(name, outcome)

    def _tell_waiting(self, name: str, decision: Decision) -> None:
        """Tell each pod once that it waits."""
        told = self._told.pop(name, frozenset())
        if decision.waiting:
            self._told[name] = frozenset(one.pod.uid for one in decision.waiting)
            fresh = (one for one in decision.waiting if one.pod.uid not in told)
            self._outputs.events.inform(map(notice_of_waiting, fresh))

    async def _confirm_absences(self, name: str) -> tuple[PodView, ...]:
        """Pods with CPUs on a node that exist although their watch has not delivered them yet.

        Raises:
            BehindError: the Node itself is such an object.
            ClientError: it is not known whether an object is gone.
        """
        assignment = self._state.assignments.get(name)
        if assignment is None:
            return ()
        await self._absences.confirm_node(assignment)
        if (lost := self._state.lost.get(name)) is not None:
            assignment = replace(assignment, spec=lost)
        return await self._absences.missing_pods(assignment, pods_on(self._state, name))

    async def _write(
        self, picture: NodePicture, decision: Decision, planned_seconds: float
    ) -> None:
        """Write what was decided since then, and count the result."""
        if decision.write is Write.NOTHING:
            return
        operation, add = decision.write.value, self._outputs.meter.add
        try:
            await self._send(picture, decision, planned_seconds)
        except ClientError as error:
            add(WRITES, operation, result_of(error))
            raise
        add(WRITES, operation, "written")

    async def _send(self, picture: NodePicture, decision: Decision, planned_seconds: float) -> None:
        before, node, sent_seconds = picture.assignment, picture.node, self._clock.monotonic()
        if decision.write is Write.DELETE:
            assert before is not None
            await self._cluster.delete_assignment(before)
            self._state.assignments.drop(before.name, before.version)
            self._state.lost.pop(picture.name, None)
            _log.info("deleted an assignment", extra={"node": picture.name})
            return
        assert node is not None
        assert decision.spec is not None
        if before is None:
            after = await self._cluster.create_assignment(node, decision.spec)
        else:
            after = await self._cluster.replace_spec(before, node, decision.spec)
        self._state.assignments.put(after)
        self._state.lost.pop(picture.name, None)
        planned, sent = (planned_seconds, sent_seconds), (sent_seconds, self._clock.monotonic())
        self._outputs.written(Written(after.name, after.spec, after.generation, planned, sent))
        fresh = fresh_refusals(before.spec.refused if before else (), after.spec.refused)
        pods = {pod.uid: pod for pod in picture.pods}
        governing = picture.ranked[0] if picture.ranked else None
        for refusal in fresh:
            what = consequence(governing, pods.get(refusal.pod_uid))
            self._outputs.events.offer([refusal], what)
            self._outputs.meter.add(REFUSALS, refusal.reason)
        self._tell_written(before.spec if before else None, after, pods)
        self._outputs.log.written(after)

    def _tell_written(
        self, before: NodeAssignmentSpec | None, after: AssignmentView, pods: Mapping[str, PodView]
    ) -> None:
        """Tell pods which CPUs they got, have now after a resize, or still wait for."""
        events = self._outputs.events
        written = notices_of_written(before, after.spec, pods, after.topology)
        moved = notices_of_moves(before, after.spec, after.topology)
        events.inform(chain(written, moved))
        events.offer(fresh_waits(before, after.spec), KEEPS)

    async def _read_again(self, name: str) -> None:
        """Read the assignment: our watch is behind, or another operator wrote it."""
        fresh = await self._cluster.read_assignment(name, self._state.assignments.known(name))
        cached = self._state.assignments.get(name)
        if fresh is not None:
            if cached is not None and cached.uid != fresh.uid:
                self._state.assignments.drop(name, cached.version)
            self._state.assignments.put(fresh)
        elif cached is not None:
            self._state.assignments.drop(name, cached.version)
