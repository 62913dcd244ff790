"""Write what was decided about a node, and take the API server's answer into the cache."""

from dataclasses import dataclass

from numapin_daemon.clock import Clock
from numapin_operator.api_server import Cluster
from numapin_operator.nodes.decide import Decision, NodePicture, Write
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import AssignmentView
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
        planned_seconds = picture.now.monotonic if picture.now else began_seconds
        planned, sent = (planned_seconds, began_seconds), (began_seconds, self._clock.monotonic())
        return WriteResult(picture, decision, after, planned, sent)

    async def read_again(self, name: str) -> None:
        """Read an assignment: our watch is behind, or another operator wrote it."""
        assignments = self._state.assignments
        fresh = await self._cluster.read_assignment(name, assignments.known(name))
        cached = assignments.get(name)
        if fresh is not None:
            if cached is not None and cached.uid != fresh.uid:
                assignments.drop(name, cached.version)
            assignments.put(fresh)
        elif cached is not None:
            assignments.drop(name, cached.version)

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
        if before is None:
            after = await self._cluster.create_assignment(node, spec)
        else:
            after = await self._cluster.replace_spec(before, node, spec)
        self._state.assignments.put(after)
        self._state.lost.pop(picture.name, None)
        return after
