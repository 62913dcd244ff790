"""Which assignment is in force: the API server's if it is valid, else the last valid one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.forms.report import Generation
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_api.text import join_texts
from numapin_api.topology import Topology
from numapin_enforcer.assignment.copy_file import LocalCopyError
from numapin_enforcer.assignment.decode import InvalidSpecError
from numapin_enforcer.assignment.either_form import (
    NO_GENERATION,
    DecodedSpec,
    Judged,
    Key,
    decode_assignment,
    refusals_told,
    with_refusals,
)
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
        newest: the newest spec that the API server has; None if it cannot be decoded.
        assigned: its containers that have been accepted as they are: all if it was accepted.
    """

    node_name: str
    accepted: Assignment | None = None
    refusal: Obstacle | None = None
    waiting: Obstacle | None = None
    newest: DecodedSpec | None = None
    assigned: Mapping[Key, ContainerAssignment] = field(default_factory=dict)
    _seen: Generation = NO_GENERATION
    _refusals: Mapping[str, Any] | None = None
    """What the status of the object said of refused pods; None if that was not looked at."""
    _copy_problem: Obstacle | None = None

    @property
    def spec(self) -> NodeAssignmentSpec | None:
        """The spec in force; None before the first one was accepted."""
        return self.accepted.spec if self.accepted is not None else None

    @property
    def enforces(self) -> bool:
        """Whether the accepted assignment must be enforced; if not, all cgroups are released."""
        return self.accepted is not None and is_enforced(self.accepted.spec.mode)

    @property
    def generation(self) -> int:
        """Of the newest spec that the API server has; 0 before the first one."""
        return self._seen.generation

    @property
    def enforced(self) -> Generation:
        """The spec in force; of none before the first one was accepted."""
        known = self.accepted
        return Generation(known.uid, known.generation) if known is not None else NO_GENERATION

    @property
    def unknown(self) -> tuple[str, ...]:
        """Fields of the newest spec that this enforcer does not have."""
        return self.newest.unknown if self.newest is not None else ()

    @property
    def judged(self) -> Judged:
        """What was made of the newest spec, for a report."""
        newest = self.newest
        waited_for, has_lines = (newest.waited_for, newest.has_lines) if newest else (None, False)
        refused = frozenset[str]()
        if newest is not None and self.refusal is not None:
            refused = frozenset(one.pod_uid for one in newest.spec.containers)
        return Judged(self._seen, self.enforced, self.assigned, waited_for, has_lines, refused)

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
        seen = Generation(str(metadata["uid"]), int(metadata["generation"]))
        if seen != self._seen:
            self._seen, self._refusals = seen, None
            self._judge(body, topology)
            self.assigned = self._accepted_as_they_are()
            self._log()
        self._take_refusals(body)

    def _log(self) -> None:
        if self.refusal is None:
            LOG.info(ACCEPTED, extra={"generation": self.generation})
        else:
            extra = {"generation": self.generation, "why": self.refusal.message}
            LOG.warning("refused an assignment", extra=extra)

    def _judge(self, body: Mapping[str, Any], topology: Topology) -> None:
        self.newest = None
        try:
            self.newest = decoded = decode_assignment(body)
        except InvalidSpecError as error:
            message = join_texts(error.faults, "; ", MESSAGE_LIMIT)
            self.refusal = Obstacle(Reason.INVALID_ASSIGNMENT, message)
            return
        spec, self.waiting = decoded.spec, None
        if spec.mode != "None" and spec.pools is None:
            message = "the operator has not set spec.pools yet"
            self.refusal, self.waiting = None, Obstacle(Reason.WAITING_FOR_ASSIGNMENT, message)
            return
        name = body["metadata"]["name"]
        problems = find_problems(spec, topology, name, self.node_name)
        if problems and not self._was_accepted(name, spec):
            named = [one.of_line() for one in problems] if decoded.has_lines else problems
            message = join_texts(list(map(str, named)), "; ", MESSAGE_LIMIT)
            self.refusal = Obstacle(problems[0].reason, message)
        else:
            seen = (self._seen.uid, self._seen.generation)
            self.accepted, self.refusal = Assignment(self.node_name, *seen, spec), None

    def _accepted_as_they_are(self) -> Mapping[Key, ContainerAssignment]:
        """The containers of the newest spec that a spec had that was accepted as well."""
        if self.newest is None:
            return {}
        return self.newest.first_seen_by(self.enforced.of(self._seen.uid))

    def _take_refusals(self, body: Mapping[str, Any]) -> None:
        """Keep the accepted spec as v1alpha1 has it, with the pods that are refused.

        Of an object with lines the status says it, and no generation changes with that.
        """
        known, newest = self.accepted, self.newest
        if newest is None or known is None or not newest.has_lines or self.enforced != self._seen:
            return
        refusals = refusals_told(body)
        if refusals != self._refusals:
            self._refusals = refusals
            self.accepted = replace(known, spec=with_refusals(known.spec, refusals))

    def retire(self) -> None:
        """Enforce nothing any more, as with `mode: None`, since there is no NodeAssignment."""
        if not self.enforces:
            return
        LOG.warning("releasing every cgroup, since this node has no NodeAssignment")
        self.accepted = Assignment(self.node_name, "", 0, NodeAssignmentSpec(mode="None"))
        self.refusal = self.waiting = None
        self.newest, self.assigned, self._seen = None, {}, NO_GENERATION

    def _was_accepted(self, name: str, spec: NodeAssignmentSpec) -> bool:
        """Whether it is in force already: a CPU that went offline since does not change that."""
        known = self.accepted
        if known is None or known.node_name != name:
            return False
        return with_refusals(known.spec, {}) == with_refusals(spec, {})
