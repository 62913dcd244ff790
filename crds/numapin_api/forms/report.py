"""What a NodeReport says, as the status of a NodeAssignment in v1alpha1, and back.

A report names only what differs from the lines of one generation. Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from numapin_api.cpuset import CpuSet, MemSet

Json = dict[str, Any]
Key = tuple[str, str]

KERNEL_FIELDS: Final = ("enforced", "pools", "differences", "notRunning")
"""What is read from the cgroups; if they cannot be read, it stays as it was reported."""

_OF_ASSIGNMENTS: Final = frozenset(
    {
        *("observedGeneration", "topology", "containers", "running"),
        *("refused", "outdated", "lastPassTime"),
    }
)
"""Fields of a status that a report says otherwise, or not at all. It has all others alike."""

_OF_REPORTS: Final = frozenset({"observed", "enforced", "differences", "notRunning"})
"""Fields of a report that a status says otherwise. It has all others alike."""


class Assigned(Protocol):
    """An entry of a spec, of whichever plain class."""

    @property
    def key(self) -> Key:
        """The UID of its pod, and its name."""

    @property
    def pod_uid(self) -> str:
        """The UID of its pod."""

    @property
    def container(self) -> str:
        """Its name."""

    @property
    def cpus(self) -> CpuSet:
        """Its CPUs; if empty, the shared pool."""

    @property
    def mems(self) -> MemSet:
        """Its NUMA nodes; if empty, any."""

    @property
    def exclusive(self) -> bool:
        """Whether no other container may use these CPUs."""


class Found(Assigned, Protocol):
    """A container as read back, of whichever plain class."""

    def to_wire(self) -> Json:
        """The value as a JSON object."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A NodeAssignment, by its UID, and one of its generations; 0 if it is of none."""

    uid: str = ""
    generation: int = 0

    @classmethod
    def read(cls, raw: object) -> "Generation":
        """Read it from a report; a wrong one is none."""
        if not isinstance(raw, Mapping):
            return cls()
        uid, generation = raw.get("uid"), raw.get("generation")
        if isinstance(uid, str) and isinstance(generation, int):
            return cls(uid, generation)
        return cls()

    def to_wire(self) -> Json:
        """The value as a JSON object."""
        return {"uid": self.uid, "generation": self.generation}

    def of(self, uid: str) -> int:
        """The generation, if it is of that object; else 0."""
        return self.generation if self.uid == uid else 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What was made of the newest spec.

    Attributes:
        observed: its generation.
        enforced: the generation that is in force.
        refused: UIDs of the pods that it lists, if it was refused.
    """

    observed: Generation
    enforced: Generation
    refused: frozenset[str] = frozenset()


def report_fields(
    status: Mapping[str, Any],
    found: Iterable[Found],
    running: Iterable[str],
    assigned: Mapping[Key, Assigned],
    seen: Seen,
) -> Json:
    """The status of a NodeReport.

    Args:
        status: the status of a NodeAssignment as v1alpha1 has it. A report has most of its fields.
        found: the containers in force, as read back.
        running: UIDs of the pods that have a container cgroup.
        assigned: the containers of the newest spec that have been accepted as they are.
        seen: what was made of the newest spec.
    """
    in_force = {one.key: one for one in found}
    shared = (status.get("pools") or {}).get("shared", "")
    different = [
        one.to_wire()
        for key, one in sorted(in_force.items())
        if not _is_as_assigned(one, assigned.get(key), shared)
    ]
    here = frozenset(running)
    absent = sorted({*_absent(assigned, in_force, here), *seen.refused} - here)
    made = {key: one for key, one in status.items() if key not in _OF_ASSIGNMENTS and _says(one)}
    made |= {"observed": seen.observed.to_wire(), "enforced": seen.enforced.to_wire()}
    made |= {"differences": different} if different else {}
    return made | ({"notRunning": absent} if absent else {})


def _says(value: object) -> bool:
    """Whether a field is written: a list, map or text only if it is not empty, a count always."""
    return bool(value) or isinstance(value, int)


def _is_as_assigned(one: Found, want: Assigned | None, shared: str) -> bool:
    """Whether a container has just what its line says; without CPUs of its own, the shared pool."""
    if want is None or one.exclusive is not want.exclusive:
        return False
    has_cpus = one.cpus == want.cpus if want.cpus else str(one.cpus) == shared
    return has_cpus and (not want.mems or one.mems == want.mems)


def _absent(
    assigned: Mapping[Key, Assigned],
    in_force: Mapping[Key, object],
    running: frozenset[str],
) -> Iterator[str]:
    """Pods that have lines and do not run; of pods that run, the containers that do not."""
    yield from {uid for uid, _ in assigned if uid not in running}
    yield from (
        f"{uid}/{container}"
        for uid, container in assigned
        if uid in running and (uid, container) not in in_force
    )


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a NodeReport says of one NodeAssignment, whose lines it knows.

    Attributes:
        raw: the status of the NodeReport.
        observed: the generation that it is about.
        running: UIDs of the pods that count as running.
        in_force: the containers that have what their lines say.
        different: what the kernel has instead, by container.
    """

    raw: Mapping[str, Any]
    observed: int
    running: frozenset[str]
    in_force: tuple[Assigned, ...]
    different: Mapping[Key, Mapping[str, Any]]

    def status(self, *, with_containers: bool = True) -> Json:
        """The status of the NodeAssignment as v1alpha1 has it; its containers if they matter."""
        made = {key: one for key, one in self.raw.items() if key not in _OF_REPORTS}
        made |= {"observedGeneration": self.observed, "running": sorted(self.running)}
        return made | ({"containers": self._containers()} if with_containers else {})

    def _containers(self) -> list[Mapping[str, Any]]:
        shared = (self.raw.get("pools") or {}).get("shared", "")
        return [*self.different.values(), *(_as_assigned(one, shared) for one in self.in_force)]


def read_report(
    report: Mapping[str, Any],
    uid: str,
    generation: int,
    entries: Sequence[Assigned],
    since: Sequence[int],
) -> ReadReport | None:
    """What a report says of a NodeAssignment; None if it is of one that was deleted.

    A line that is newer than the report counts as running and not as in force: so nothing is
    released because of a report that has not seen it.

    Args:
        report: the status of the NodeReport.
        uid: of the NodeAssignment.
        generation: its newest one that is known.
        entries: its containers.
        since: the generation that first had each.
    """
    observed, enforced = (one.of(uid) for one in _seen_by(report))
    if observed == 0:
        return None
    accepted, judged = enforced, observed
    if is_ahead(report, uid, generation):
        accepted = judged = 0
    absent = frozenset(report.get("notRunning") or ())
    different = {(one["podUID"], one["container"]): one for one in report.get("differences") or ()}
    in_force, running = list[Assigned](), {uid for uid, _ in different}
    for one, first in zip(entries, since, strict=True):
        if first > accepted:
            # Of a spec that was refused nothing is in force.
            if first > judged or one.pod_uid not in absent:
                running.add(one.pod_uid)
            continue
        if one.pod_uid in absent:
            continue
        running.add(one.pod_uid)
        if one.key not in different and f"{one.pod_uid}/{one.container}" not in absent:
            in_force.append(one)
    return ReadReport(report, observed, frozenset(running), tuple(in_force), different)


def status_of(
    report: Mapping[str, Any],
    uid: str,
    generation: int,
    entries: Sequence[Assigned],
    since: Sequence[int],
) -> Json:
    """The status of a NodeAssignment as v1alpha1 has it, by its node's report; see `read_report`.

    Empty if the report is of one that was deleted.
    """
    read = read_report(report, uid, generation, entries, since)
    return read.status() if read is not None else {}


def is_ahead(report: Mapping[str, Any], uid: str, generation: int) -> bool:
    """Whether a report is about a later generation of a NodeAssignment than is known here."""
    return any(one.of(uid) > generation for one in _seen_by(report))


def _seen_by(report: Mapping[str, Any]) -> tuple[Generation, Generation]:
    """The generation that a report is about, and the one in force."""
    return Generation.read(report.get("observed")), Generation.read(report.get("enforced"))


def _as_assigned(one: Assigned, shared: str) -> Json:
    return {
        "podUID": one.pod_uid,
        "container": one.container,
        "cpus": str(one.cpus) or shared,
        "mems": str(one.mems),
        "exclusive": one.exclusive,
    }
