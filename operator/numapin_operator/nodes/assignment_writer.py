"""Write what was decided about a node, and take the API server's answer into the cache."""

from dataclasses import dataclass, replace

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_daemon.clock import Clock
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.decide import Decision, NodePicture, Write
from numapin_operator.observe.assignments.printing import is_printed_alike, told_of
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import NodeView
from numapin_operator.telemetry.states import Times


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A decision that the API server has taken.

    Attributes:
        picture: what was decided by.
        decision: what was decided.
        after: the assignment as it is now; None if it was deleted, or nothing was written.
        planned: when the picture was taken, and when the write began.
        sent: when the write began, and when it ended.
    """

    picture: NodePicture
    decision: Decision
    after: AssignmentView | None
    planned: Times
    sent: Times

    @property
    def assignment(self) -> AssignmentView | None:
        """What the node has then, whether it was written or not."""
        if self.after is not None:
            return self.after
        return None if self.decision.write is Write.DELETE else self.picture.assignment


class AssignmentWriter:
    """Writes NodeAssignments."""

    def __init__(self, cluster: Cluster, state: ClusterState, clock: Clock) -> None:
        """Write to `cluster`, and have `state` know it before its watch does."""
        self._cluster, self._state, self._clock = cluster, state, clock

    async def write(self, picture: NodePicture, decision: Decision) -> WriteResult:
        """Make the write that a decision asks for, if any.

        Raises:
            ClientError: it was not made, as far as is known.
        """
        began_seconds = self._clock.monotonic()
        after = None
        if decision.write is Write.DELETE:
            await self._delete(picture)
        elif decision.write is not Write.NOTHING:
            after = await self._put(picture, decision)
        if told := await self._tell(after or self._still(picture, decision), decision.spec):
            after = told
        planned_seconds = picture.now.monotonic if picture.now else began_seconds
        planned, sent = (planned_seconds, began_seconds), (began_seconds, self._clock.monotonic())
        return WriteResult(picture, decision, after, planned, sent)

    async def read_again(self, name: str) -> None:
        """Read an assignment: our watch is behind, or another operator wrote it."""
        known = self._state.assignments.known(name)
        self._state.put_read(name, await self._cluster.read_assignment(name, known))

    async def _delete(self, picture: NodePicture) -> None:
        before = picture.assignment
        assert before is not None
        await self._cluster.delete_assignment(before)
        self._state.assignments.drop(before.name, before.version)
        self._state.lost.pop(picture.name, None)

    async def _put(self, picture: NodePicture, decision: Decision) -> AssignmentView:
        """Create or replace the assignment; return it as it is now."""
        before, node, spec = picture.assignment, picture.node, decision.spec
        assert node is not None
        assert spec is not None
        as_lines = picture.as_lines
        if before is None:
            after = await self._cluster.create_assignment(node, spec, as_lines=as_lines)
        elif as_lines and before.form.has_lines and _is_told_alone(before, node, spec):
            after = replace(before, spec=spec)
            self._state.assignments.amend(after)
            return after
        else:
            after = await self._cluster.replace_spec(before, node, spec, as_lines=as_lines)
        return self._take_in(after)

    def _still(self, picture: NodePicture, decision: Decision) -> AssignmentView | None:
        """The assignment, if nothing is written: what it tells may not be written yet."""
        return picture.assignment if decision.write is Write.NOTHING else None

    async def _tell(
        self, after: AssignmentView | None, decided: NodeAssignmentSpec | None
    ) -> AssignmentView | None:
        """Have the status tell what the spec does not; None if it does, or does not need to."""
        if after is None or after.deleting or after.problem or after.own.is_there:
            return None
        told, before = told_of(decided or after.spec), after.form.told
        if not after.form.has_lines and (after.spec.pools is not None or told):
            return None  # the spec itself says it; what was told before it had none must go
        if told == before:
            return None
        gone = dict.fromkeys(before.keys() - told.keys())
        changed = {key: value for key, value in told.items() if before.get(key) != value}
        return self._take_in(await self._cluster.tell(after, gone | changed))

    def _take_in(self, after: AssignmentView) -> AssignmentView:
        """Have the cache know an assignment as it is now, with what its enforcer reports."""
        after = self._state.with_report(after)
        self._state.assignments.put(after)
        self._state.lost.pop(after.name, None)
        return after


def _is_told_alone(before: AssignmentView, node: NodeView, spec: NodeAssignmentSpec) -> bool:
    """Whether a spec differs only in what the status tells, and so is not written."""
    return before.owner_uid in (None, node.uid) and is_printed_alike(before.spec, spec)
