"""Which assignment is in force: the API server's if it is valid, else the last valid one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.text import join_texts
from numapin_api.topology import Topology
from numapin_enforcer.assignment.copy_file import LocalCopyError
from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec, unknown_fields
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy
from numapin_enforcer.assignment.validation import find_problems

LOG: Final = logging.getLogger(__name__)

ACCEPTED: Final = "accepted an assignment"
"""Logged with the generation; the lab's chaos run searches the log for it."""

MESSAGE_LIMIT: Final = 4096
"""Longest message of a refusal, in characters; enough for dozens of problems."""


@dataclass(slots=True)
class Acceptance:
    """Accepts or refuses a spec as a whole.

    Attributes:
        node_name: this node.
        accepted: the assignment in force; None before the first one was accepted.
        refusal: why the newest spec is not accepted; None if it is.
        waiting: why the newest spec assigns nothing yet; None if it does.
        generation: of the newest spec that the API server has; 0 before the first one.
        unknown: fields of that spec, if it is valid, that this enforcer does not have.
    """

    node_name: str
    accepted: Assignment | None = None
    refusal: Obstacle | None = None
    waiting: Obstacle | None = None
    generation: int = 0
    unknown: tuple[str, ...] = ()
    _seen: tuple[str, int] = ("", 0)
    _copy_problem: Obstacle | None = None

    @property
    def enforces(self) -> bool:
        """Whether the accepted assignment must be enforced; if not, all cgroups are released."""
        return self.accepted is not None and self.accepted.spec.mode != "None"

    def restore(self, copy: LocalCopy) -> None:
        """Start with the local copy, which was accepted before."""
        try:
            self.accepted = copy.read()
        except LocalCopyError as error:
            self.refusal = self._copy_problem = Obstacle(error.reason, str(error))

    def pop_copy_problem(self) -> Obstacle | None:
        """What is wrong with the local copy; later calls return None."""
        problem, self._copy_problem = self._copy_problem, None
        return problem

    def offer(self, body: Mapping[str, Any], topology: Topology) -> None:
        """Accept or refuse the object that the API server has, if its spec is new."""
        metadata = body["metadata"]
        seen = (str(metadata["uid"]), int(metadata["generation"]))
        if seen == self._seen:
            return
        self._seen, self.generation = seen, seen[1]
        self._judge(body, topology)
        if self.refusal is None:
            LOG.info(ACCEPTED, extra={"generation": self.generation})
        else:
            extra = {"generation": self.generation, "why": self.refusal.message}
            LOG.warning("refused an assignment", extra=extra)

    def _judge(self, body: Mapping[str, Any], topology: Topology) -> None:
        try:
            spec = decode_spec(body.get("spec") or {})
        except InvalidSpecError as error:
            message = join_texts(error.faults, "; ", MESSAGE_LIMIT)
            self.refusal = Obstacle(Reason.INVALID_ASSIGNMENT, message)
            return
        self.unknown = unknown_fields(body.get("spec") or {})
        offered = Assignment(self.node_name, *self._seen, spec)
        self.waiting = None
        if spec.mode != "None" and spec.pools is None:
            message = "the operator has not set spec.pools yet"
            self.refusal, self.waiting = None, Obstacle(Reason.WAITING_FOR_ASSIGNMENT, message)
            return
        name = body["metadata"]["name"]
        problems = find_problems(spec, topology, name, self.node_name)
        if problems and not self._was_accepted(name, spec):
            message = join_texts([str(problem) for problem in problems], "; ", MESSAGE_LIMIT)
            self.refusal = Obstacle(problems[0].reason, message)
        else:
            self.accepted, self.refusal = offered, None

    def retire(self) -> None:
        """Enforce nothing any more, as with `mode: None`, since there is no NodeAssignment."""
        if not self.enforces:
            return
        LOG.warning("releasing every cgroup, since this node has no NodeAssignment")
        self.accepted = Assignment(self.node_name, "", 0, NodeAssignmentSpec(mode="None"))
        self.refusal = self.waiting = None
        self.generation, self._seen = 0, ("", 0)

    def _was_accepted(self, name: str, spec: NodeAssignmentSpec) -> bool:
        """Whether it is in force already: a CPU that went offline since does not change that."""
        known = self.accepted
        return known is not None and (known.node_name, known.spec) == (name, spec)
