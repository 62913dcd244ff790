"""Bring each node's assignment to what it should be: read the state, decide, write once."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.assignment_writer import AssignmentWriter
from numapin_operator.nodes.contention import Contention, ContestedError
from numapin_operator.nodes.decide import Decision, NodePicture
from numapin_operator.nodes.decide.decision import NOTHING, Moment, NodeMemory
from numapin_operator.nodes.decide.waits import with_waits
from numapin_operator.nodes.lookups.absence import Absences, BehindError
from numapin_operator.nodes.lookups.claims import Claims
from numapin_operator.nodes.node_objects import NodeObjects
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.nodes.picture import picture_of
from numapin_operator.nodes.reserving import decide_with_wishes
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.contact import longest_backoff_seconds
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView
from numapin_operator.policies.rollout import Rollout
from numapin_operator.policies.status import stalled, waiting_for_turn
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.telemetry.table import PLAN_SECONDS
from numapin_operator.telemetry.write_results import PERMANENT, STALE

ATTEMPTS: Final = 5
"""How often a stale write is planned again at once, before the node has to wait."""

UNBOUND_SECONDS: Final = 30.0
"""How often pods with a place are looked for that are neither bound nor watched."""

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
        self._state, self._queue, self._outputs = state, queue, outputs
        self._clock = clock or SystemClock()
        self._absences = Absences(cluster, state)
        self._claims = Claims(cluster, self._clock)
        self._rollout = Rollout(queue.add, state, outputs.statuses.sharing)
        self._writer = AssignmentWriter(cluster, state, self._clock)
        self._contention = Contention()
        self._objects = NodeObjects(cluster, state)
        self._memory: dict[str, NodeMemory] = {}
        """By node; those of which nothing is remembered lack."""

    async def work(self, leading: asyncio.Event) -> None:
        """Reconcile node after node from the queue, until cancelled; only while leading."""

        async def step(name: str) -> None:
            await leading.wait()
            try:
                await self.reconcile(name)
            except ContestedError as error:
                self._stall(name, error.reason, str(error))
                raise

        failed, most_seconds = self._outputs.log.failed, longest_backoff_seconds
        await self._queue.serve(step, failed, self._isolate, most_seconds)

    def policy_of(self, name: str) -> PolicyView | None:
        """The policy by which a node is planned now; None if none governs it."""
        return self._rollout.turn(name).policy

    def _isolate(self, name: str, error: Exception) -> None:
        """Stall one node after a defect.

        The traceback is logged when the error differs from the node's last one.
        """
        memory = self._memory.get(name, NOTHING)
        if memory.defect == repr(error):
            return
        self._memory[name] = replace(memory, defect=repr(error))
        _log.error("cannot plan a node", extra={"node": name}, exc_info=error)
        try:
            self._stall(name, Reason.INTERNAL_ERROR, f"{INTERNAL_ERROR}: {error!r}")
        except Exception as second:  # noqa: BLE001 - what is wrong may be the policies themselves
            _log.error("cannot report a stalled node", extra={"node": name}, exc_info=second)

    def _stall(self, name: str, reason: Reason, message: str) -> None:
        """Report on the governing policy that this node cannot be served."""
        if governing := self._state.governing(name):
            outcome = stalled(governing, name, reason, message)
            self._rollout.stall(name)
            self._outputs.statuses.set_outcome(name, outcome)

    async def reconcile(self, name: str) -> None:
        """Bring one node up to date; if it changed in between, read it and plan it again.

        Raises:
            ClientError: its assignment cannot be written now, or something else changes it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            late = await self._absences.confirm(name)
            picture = self._take_in(name, late)
            if await self._claims.read(picture):
                picture = self._take_in(name, late)
            picture, decision = self._decide(picture)
            self._contention.admit(picture, decision, self._clock.monotonic())
            try:
                result = await self._writer.write(picture, decision)
            except ClientError as error:
                self._outputs.report_failure(decision, error)
                if isinstance(error, PERMANENT):
                    self._stall(name, error.reason, str(error))
                if not isinstance(error, STALE) or attempt == ATTEMPTS:
                    raise
                await self._writer.read_again(name)
            else:
                self._outputs.report(result)
                self._settle(picture, decision)
                self._outputs.assigned(replace(picture, assignment=result.assignment))
                await self._objects.settle(name)
                self._contention.note(picture, decision, result.after, self._clock.monotonic())
                self._mind_late(name, late)
                return

    def _mind_late(self, name: str, late: Sequence[PodView]) -> None:
        """Have a node planned again that was planned with pods which its watch does not show.

        A pod that no scheduler has bound may wait long: it was opened by hand after it got a place.
        """
        if behind := [pod for pod in late if pod.node]:
            raise BehindError(f"Pod {pod.namespace}/{pod.name}" for pod in behind)
        if late:
            self._queue.add(name, at=self._clock.monotonic() + UNBOUND_SECONDS)

    def _take_in(self, name: str, late: Sequence[PodView]) -> NodePicture:
        """Give a node its turn if there is room, and begin the waits that its picture begins."""
        self._rollout.admit(name)
        picture = with_waits(self._picture(name, late))
        self._remember(name, picture.memory)
        return picture

    def _picture(self, name: str, late: Sequence[PodView]) -> NodePicture:
        """What a decision depends on, by the policy whose turn it is on the node."""
        turn = self._rollout.turn(name)
        return replace(
            self._claims.mark(picture_of(self._state, name, late, turn.policy)),
            told=self._outputs.telling.told(name),
            other_writer=self._outputs.other_writer(name),
            turn=turn,
            memory=self._memory.get(name, NOTHING),
            now=Moment(self._clock.now().timestamp(), self._clock.monotonic()),
        )

    def foresee(self, name: str) -> NodePicture:
        """What would be decided by now; nothing of it is remembered."""
        return self._picture(name, ())

    def _decide(self, picture: NodePicture) -> tuple[NodePicture, Decision]:
        """The decision, and the picture with the held pods that get a place by it."""
        began_seconds = self._clock.monotonic()
        decided = decide_with_wishes(picture)
        self._outputs.meter.observe(PLAN_SECONDS, self._clock.monotonic() - began_seconds)
        return decided

    def _remember(self, name: str, memory: NodeMemory) -> None:
        if memory == NOTHING:
            self._memory.pop(name, None)
        else:
            self._memory[name] = memory

    def _settle(self, picture: NodePicture, decision: Decision) -> None:
        """Report what became of the governing policy on a node, and have the node planned again."""
        name, turn, outcome, outputs = picture.name, picture.turn, decision.outcome, self._outputs
        self._remember(name, decision.memory)
        if decision.overdue:
            outputs.log.not_released(name)
        self._rollout.settle(name, turn, outcome)
        governing = self._state.governing(name)
        if turn.wait and governing is not None:
            outcome = waiting_for_turn(governing, name, turn.wait, outcome)
        outputs.statuses.set_outcome(name, outcome)
        if decision.again_at is not None:
            self._queue.add(name, at=decision.again_at)
        outputs.evictor.offer(name)
