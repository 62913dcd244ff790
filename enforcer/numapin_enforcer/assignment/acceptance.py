"""Which assignment is in force: the API server's if it is sound, else the last that was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from numapin_api.conditions import Obstacle, Reason
from numapin_api.invalid import invalid_fields
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy, LocalCopyError
from numapin_enforcer.assignment.validation import accept

MESSAGE_LIMIT = 4096
"""Characters of a refusal; enough for dozens of problems."""


@dataclass(slots=True)
class Acceptance:
    """Takes a spec whole or refuses it whole.

    Attributes:
        node_name: the node that this enforcer acts on.
        accepted: what is to be in force; None until anything was ever accepted.
        refusal: why the newest spec is not; None while it is.
        waiting: why the newest spec says nothing yet; None when it does.
        generation: of the newest spec seen in the API server; 0 before any.
    """

    node_name: str
    accepted: Assignment | None = None
    refusal: Obstacle | None = None
    waiting: Obstacle | None = None
    generation: int = 0
    _seen: tuple[str, int] = ("", 0)
    _copy_problem: Obstacle | None = None

    @property
    def enforces(self) -> bool:
        """Whether what was accepted is to be enforced, and not to be given back."""
        return self.accepted is not None and self.accepted.spec.mode != "None"

    def restore(self, copy: LocalCopy) -> None:
        """Begin with the assignment kept on the node; it was accepted before."""
        try:
            self.accepted = copy.read()
        except LocalCopyError as error:
            self.refusal = self._copy_problem = Obstacle(error.reason, str(error))

    def pop_copy_problem(self) -> Obstacle | None:
        """What was wrong with the kept assignment, once: it soon counts no more."""
        problem, self._copy_problem = self._copy_problem, None
        return problem

    def offer(self, body: Mapping[str, Any], topology: Topology) -> bool:
        """Judge the object as the API server has it; says whether its spec is a new one."""
        metadata = body["metadata"]
        seen = (str(metadata["uid"]), int(metadata["generation"]))
        if seen == self._seen:
            return False
        self._seen, self.generation = seen, seen[1]
        try:
            spec = NodeAssignmentSpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            message = "; ".join(map(str, invalid_fields(error, within="spec")))[:MESSAGE_LIMIT]
            self.refusal = Obstacle(Reason.INVALID_ASSIGNMENT, message)
            return True
        offered = Assignment(self.node_name, *seen, spec)
        self.waiting = None
        if spec.mode != "None" and spec.pools is None:
            told = "the operator has not said yet which CPUs are shared"
            self.refusal, self.waiting = None, Obstacle(Reason.WAITING_FOR_ASSIGNMENT, told)
            return True
        problems = accept(spec, topology, metadata["name"], self.node_name)
        if problems and not self._was_accepted(metadata["name"], spec):
            told = "; ".join(str(problem) for problem in problems)[:MESSAGE_LIMIT]
            self.refusal = Obstacle(problems[0].reason, told)
        else:
            self.accepted, self.refusal = offered, None
        return True

    def _was_accepted(self, name: str, spec: NodeAssignmentSpec) -> bool:
        """Whether it is in force already: a CPU that went offline since does not undo that."""
        known = self.accepted
        return known is not None and (known.node_name, known.spec) == (name, spec)
