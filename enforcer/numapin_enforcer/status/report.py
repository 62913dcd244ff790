"""The status after a pass, of the pass, the node's facts and what is wrong. Does no I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.conditions.merging import merge_conditions
from numapin_api.conditions.reasons import (
    ConditionType,
    Obstacle,
    Reason,
    Verdict,
    internal_error,
)
from numapin_api.forms.report import KERNEL_FIELDS as REPORTED_OF_KERNEL
from numapin_api.forms.report import Seen, report_fields
from numapin_api.meta.modes import AUDIT
from numapin_api.quantity import plural
from numapin_api.schema.plain import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.text import first_texts
from numapin_enforcer.assignment.either_form import Judged
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.conditions import SHOWN, foreign_note, judge, unread_note
from numapin_enforcer.status.facts import Facts
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.status.obstacles import cgroup_obstacles, lack_obstacles
from numapin_enforcer.status.state import Part, State, States, in_order

NO_ANSWER_YET: Final = "it has not answered yet; does --cri-socket name its socket?"

KERNEL_FIELDS: Final = ("containers", "pools", "running")
"""The fields of a status that are read from the cgroups; `forms.report` has those of a report."""

COUNT_FIELDS: Final = frozenset({"refused", "outdated"})
"""Counts of the spec. The operator writes them if the spec has lines."""

STATUS_FIELDS: Final = frozenset(
    {
        *("observedGeneration", "lastPassTime", "topology", "freeHugepages", "pools", "containers"),
        *("kubeletContainers", "claims", "unboundMemory", "running", "driftCount", "driftCauses"),
        *("cgroup", "runtime", "startGate", "system", "cache", "isolation", "devices", "bootID"),
        "conditions",
        "disturbances",
    }
)
"""The other fields of a NodeAssignment's status that an enforcer writes."""

_JUDGED: Final = ("observedGeneration", "observed", "conditions")


@dataclass(frozen=True, slots=True)
class Report:
    """A status whose conditions have no times yet: those depend on the status before.

    Attributes:
        content: everything but the conditions.
        verdicts: the conditions.
        judged: what was made of the newest spec.
        blind: the cgroups were unreadable; the previously reported values stay.
        failed: there was no result at all; everything stays but generation and conditions.
    """

    content: NodeAssignmentStatus
    verdicts: tuple[Verdict, ...]
    judged: Judged = field(default_factory=Judged)
    blind: bool = False
    failed: bool = False

    def missing(self, problems: Mapping[str, str]) -> dict[str, str]:
        """What keeps the enforcer from being ready, for /readyz: of these problems, and of ours."""
        found = {name: problem for name, problem in problems.items() if problem}
        for verdict in self.verdicts:
            if verdict.type == "Ready" and not verdict.holds:
                found["enforcement"] = f"{verdict.reason}: {verdict.message}"
        if not found and self.content.runtime is None:
            found["container runtime"] = NO_ANSWER_YET
        return found

    def wire(self, before: Mapping[str, Any], now: str) -> dict[str, Any]:
        """The whole status of a NodeAssignment as JSON.

        Args:
            before: the status that the API server has.
            now: the time, RFC 3339, used where a condition changes.
        """
        made = self._said(before, now)
        made.pop("devices", None)  # a NodeAssignment has no room for them
        made["disturbances"] = []
        if self.judged.has_lines:
            made = {key: one for key, one in made.items() if key not in COUNT_FIELDS}
            made |= {key: before[key] for key in COUNT_FIELDS if key in before}
        return self._kept(before, made, KERNEL_FIELDS)

    def node_report(self, before: Mapping[str, Any], now: str) -> dict[str, Any]:
        """The whole status of a NodeReport as JSON; see `wire`."""
        judged = self.judged
        made = report_fields(
            self._said(before, now),
            self.content.containers,
            self.content.running,
            judged.assigned,
            Seen(judged.observed, judged.enforced, judged.refused),
        )
        return self._kept(before, made, REPORTED_OF_KERNEL)

    def _said(self, before: Mapping[str, Any], now: str) -> dict[str, Any]:
        generation = self.content.observed_generation
        known = before.get("conditions") or ()
        conditions = merge_conditions(known, self.verdicts, generation, now)
        return self.content.to_wire() | {"conditions": conditions}

    def _kept(
        self, before: Mapping[str, Any], made: dict[str, Any], of_kernel: tuple[str, ...]
    ) -> dict[str, Any]:
        """With what stays as it was reported before."""
        if self.failed:
            judged = _JUDGED if self.judged.observed.generation else ("conditions",)
            return {**before, **{key: made[key] for key in judged if key in made}}
        if self.blind:
            made = {key: value for key, value in made.items() if key not in of_kernel}
            return made | {key: before[key] for key in of_kernel if key in before}
        return made


def build_report(one: Pass, facts: Facts, states: States, summary: Summary | None) -> Report:
    """The status after a pass.

    Args:
        one: the pass.
        facts: what is known besides.
        states: what each part has to say, but for what the pass itself shows.
        summary: what the kernel has; None if it could not be read.
    """
    has, spec = summary or Summary(), one.spec
    said = in_order({**states, **_shown_by(one, has)})
    working = _first(obstacle for state in said for obstacle in state.working)
    confined = has.confined.note if has.confined else ""
    first_notes = (_fine(spec, has), foreign_note(one.foreign), confined)
    done = Reason.AUDITED if one.audits else Reason.ENFORCED
    others = next((state.reason for state in said if state.reason), done)
    reason = Reason.INHERITED_AFFINITY if confined else others
    verdicts = judge(
        _first(obstacle for state in said for obstacle in state.stalled),
        working,
        "; ".join(filter(None, (*first_notes, *(state.note for state in said)))),
        Reason.FOREIGN_TASKS if one.foreign else reason,
    )
    if working is None and (left := _outdated(spec)):
        verdicts = (verdicts[0], _waiting_for(left), verdicts[2])
    content = _content(one, facts, has)
    return Report(content, verdicts, facts.judged, blind=summary is None)


def failed_report(judged: Judged, error: Exception) -> Report:
    """The status after a pass that failed unexpectedly: all that was reported before stays."""
    content = NodeAssignmentStatus(observed_generation=judged.observed.generation)
    obstacle = internal_error("a pass over the cgroups", error)
    return Report(content, judge(obstacle, None, ""), judged, failed=True)


def _content(one: Pass, facts: Facts, has: Summary) -> NodeAssignmentStatus:
    return replace(
        facts.content,
        pools=has.pools,
        containers=has.containers,
        kubelet_containers=one.pinned,
        disturbances=one.disturbances,
        running=has.running,
        refused=_refused(one.spec),
        outdated=len(_outdated(one.spec)),
    )


def _shown_by(one: Pass, has: Summary) -> States:
    """What the pass itself has to say."""
    failed_passes, tree = one.failed_passes, one.result.tree
    writes = cgroup_obstacles(one.result.failures, failed_passes)
    lacks = lack_obstacles(has.lacks, failed_passes)
    conflict = Obstacle(Reason.KUBELET_STATIC_POLICY, one.conflict)
    unread = unread_note(tree.unread if tree is not None else (), one.spec)
    return {
        Part.KUBELET: State(stalled=(conflict,) if one.conflict else ()),
        Part.READING: State(stalled=(one.unreadable,) if one.unreadable is not None else ()),
        Part.WRITES: State(stalled=tuple(writes[0]), working=tuple(writes[1])),
        Part.LACKS: State(stalled=tuple(lacks[0])),
        Part.UNREAD: State(note=unread),
        Part.THREADS: State(note=one.unseen),
        Part.RETRIED_LACKS: State(working=tuple(lacks[1])),
        Part.SAVING: State(working=tuple(_unsaved(has))),
    }


def _refused(spec: NodeAssignmentSpec | None) -> int:
    """How many pods are refused, with those that the spec has no room for."""
    return spec.refused_count if spec else 0


def _outdated(spec: NodeAssignmentSpec | None) -> list[str]:
    """The containers that the newest policy would not place as they are."""
    if spec is None:
        return []
    return [f"{one.namespace}/{one.pod}/{one.container}" for one in spec.containers if one.outdated]


def _waiting_for(outdated: Sequence[str]) -> Verdict:
    """The kernel has what the spec says, and the spec not all that the policy says."""
    count, named = plural(len(outdated), "container"), first_texts(outdated, SHOWN)
    message = f"the policy would place {count} otherwise, until they end: {named}"
    return Verdict(ConditionType.RECONCILING, True, Reason.WAITING_FOR_CONTAINERS, message)


def _unsaved(summary: Summary) -> list[Obstacle]:
    """Containers that are reported as exclusive once the assignment is on disk."""
    if not summary.unsaved:
        return []
    new = plural(summary.unsaved, "new exclusive container")
    return [Obstacle(Reason.APPLYING, f"the assignment is being saved on the node, with {new}")]


def _fine(spec: NodeAssignmentSpec | None, summary: Summary) -> str:
    if spec is None:
        return "there is nothing to enforce"
    if spec.mode == "None":
        return "every cgroup has what its parent has"
    if spec.mode == AUDIT:
        return _foreseen(spec, summary)
    count = sum(one.exclusive for one in summary.containers)
    given = f"{plural(count, 'container')} with exclusive CPUs"
    if spec.release_at is None:
        return given
    return f"{given}; no policy wants them any more: given back at {spec.release_at}"


def _foreseen(spec: NodeAssignmentSpec, summary: Summary) -> str:
    """What the spec would change; shared containers are not counted, since they come and go."""
    asked = {one.key for one in spec.containers if one.exclusive}
    found = [one for one in summary.containers if (one.pod_uid, one.container) in asked]
    count = plural(sum(not one.exclusive for one in found), "running container")
    return f"mode Audit writes nothing here; {count} would get exclusive CPUs"


def _first(obstacles: Iterable[Obstacle]) -> Obstacle | None:
    return next(iter(obstacles), None)
