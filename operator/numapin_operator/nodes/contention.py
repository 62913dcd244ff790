"""Whether something else changes what the operator has written to NodeAssignments, again and again.

An admission webhook that changes each write, or a controller that undoes it, would have the
operator write without a pause. What is changed once or twice is put right at once. Does no I/O.
"""

from dataclasses import dataclass, replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_client.errors import ClientError
from numapin_operator.nodes.decide import Decision, NodePicture, Write
from numapin_operator.observe.assignments.printing import is_printed_alike
from numapin_operator.observe.assignments.view import AssignmentView

AT_ONCE: Final = 2
"""How often in a row a node's assignment is put right at once."""

LONGEST_SECONDS: Final = 32.0
"""How long the operator waits at most before it puts an assignment right."""

FORGET_SECONDS: Final = 4 * LONGEST_SECONDS
"""How long after it was last put right an assignment counts as changed by nobody else."""

CONTESTED: Final = (
    "something else changes what the operator writes to this NodeAssignment, again and again: look "
    "for admission webhooks, admission policies and controllers that may change nodeassignments "
    "(kubectl get nodeassignment {name} --show-managed-fields -o yaml), and whether the CRDs are "
    "of this version"
)


class ContestedError(ClientError):
    """An assignment is not as it was written, or is not put right now: that was done too often."""

    reason: Final = Reason.ASSIGNMENT_CONTESTED

    def __init__(self, node: str, wait_seconds: float) -> None:
        """Have the node wait so long before it is planned again."""
        super().__init__(CONTESTED.format(name=node))
        self.retry_after_seconds = wait_seconds


@dataclass(frozen=True, slots=True)
class _Written:
    """What was written of one node last.

    Attributes:
        uid: of the assignment.
        generation: what the API server gave it; 0 if it made something else of it.
        put_right: how often in a row it was written because something else had changed it.
        put_right_at: when that was last, by the monotonic clock.
    """

    uid: str
    generation: int
    put_right: int = 0
    put_right_at: float = 0.0

    def is_left_alone(self, found: AssignmentView | None) -> bool:
        """Whether nobody else has written since."""
        return found is not None and (found.uid, found.generation) == (self.uid, self.generation)

    def wait_seconds(self, now: float) -> float:
        """How long it may not be put right once more."""
        over = self.put_right - AT_ONCE
        if over < 0:
            return 0.0
        return max(0.0, self.put_right_at + min(2.0**over, LONGEST_SECONDS) - now)


class Contention:
    """Remembers of each node what was written last, while the operator leads."""

    def __init__(self) -> None:
        """Know of no write."""
        self._written: dict[str, _Written] = {}

    def admit(self, picture: NodePicture, decision: Decision, now: float) -> None:
        """Let a decision be written.

        Raises:
            ContestedError: it puts right what something else has changed, too soon.
        """
        written = self._written.get(picture.name)
        if written is None or not _is_put_right(written, picture, decision):
            return
        if wait_seconds := written.wait_seconds(now):
            raise ContestedError(picture.name, wait_seconds)

    def note(
        self, picture: NodePicture, decision: Decision, after: AssignmentView | None, now: float
    ) -> None:
        """Remember what was written, and what the API server has then; None if nothing was.

        Raises:
            ContestedError: the API server made something else of it, or something else changes it
                each time.
        """
        if decision.write is Write.DELETE:
            self._written.pop(picture.name, None)
        if after is None or decision.spec is None:
            return
        is_kept = is_printed_alike(after.spec, decision.spec)
        before = self._written.get(picture.name) or _Written(after.uid, after.generation)
        written = replace(before, uid=after.uid, generation=after.generation if is_kept else 0)
        if now - before.put_right_at >= FORGET_SECONDS:
            written = replace(written, put_right=0)
        if not is_kept or _is_put_right(before, picture, decision):
            written = replace(written, put_right=written.put_right + 1, put_right_at=now)
        self._written[picture.name] = written
        if not is_kept or written.put_right > AT_ONCE:
            raise ContestedError(picture.name, written.wait_seconds(now))


def _is_put_right(written: _Written, picture: NodePicture, decision: Decision) -> bool:
    """Whether a decision writes over what something else has written."""
    is_written = decision.write in {Write.CREATE, Write.REPLACE}
    return is_written and not written.is_left_alone(picture.assignment)
