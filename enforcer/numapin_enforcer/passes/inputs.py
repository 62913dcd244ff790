"""What a pass starts from: the assignment, the hardware, and what the kubelet pins itself."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.hardware.compact import compact_free_hugepages, compact_topology
from numapin_api.schema.plain import CgroupStatus, NodeAssignmentStatus
from numapin_api.topology import Topology
from numapin_client.events import WARNING, Event
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopyWriter
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.conditions import unknown_note
from numapin_enforcer.status.events.poster import Events
from numapin_enforcer.status.facts import Facts
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.state import Part, State, States

LOG: Final = logging.getLogger(__name__)

Body = Mapping[str, Any]


class Assignments(Protocol):
    """The NodeAssignment as the API server has it now."""

    @property
    def body(self) -> Body | None:
        """The object; None if there is none, or before the first answer."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the object was deleted, and nothing may be enforced any more."""
        ...

    @property
    def received_at(self) -> float:
        """When the newest spec was received, by the clock's monotonic time."""
        ...

    @property
    def problem(self) -> str:
        """Why the API server does not answer; empty if it does."""
        ...


class Hardware(Protocol):
    """The part of the machine that pods may use."""

    topology: Topology

    @property
    def limits(self) -> str:
        """What pods may use of the machine, and why no more; empty if it is all of it."""
        ...

    def rescan(self, *, pages: bool = False) -> bool:
        """Look whether hardware came or went; returns whether `topology` changed."""
        ...

    def free_hugepages(self) -> dict[int, dict[str, int]]:
        """How many huge pages of each size are free now, by NUMA node."""
        ...


@dataclass(eq=False)
class Inputs:
    """What is known before a pass, and what the status says of it."""

    assignments: Assignments
    acceptance: Acceptance
    local_copy: LocalCopyWriter
    machine: Hardware
    kubelet: KubeletPins
    kubepods: KubepodsFinder
    events: Events
    boot_id: str | None = None
    reported: Callable[[], Mapping[str, Any]] = dict
    """Returns what an enforcer has reported of this node, which counts go on from."""
    remarks: tuple[str, ...] = ()
    """What this process lacks for as long as it runs, and enforces without."""
    unserved: Callable[[], str] = str
    """Returns why exporters get no answer; empty if they get one, or are to get none."""
    _hardware: tuple[Topology, Mapping[str, Any]] | None = field(default=None, init=False)

    def observe(self, *, full_resync: bool) -> None:
        """Look for changes of the hardware, and for what the kubelet pins."""
        if self.machine.rescan(pages=full_resync or self.kubepods.tree is None):
            LOG.info("the hardware changed", extra=_hardware_fields(self.machine))
        self.kubelet.observe(full_resync=full_resync)

    def note_driver_change(self) -> None:
        """Log and post an Event: the kubelet's cgroups are in another tree than before."""
        note = "the kubelet's cgroup driver was changed: its other tree of cgroups is enforced now"
        LOG.warning(note)
        event = Event(WARNING, Reason.CGROUP_DRIVER_CHANGED, "Move", note)
        self.events.post(event, self.assignments.body)

    def accept(self) -> None:
        """Accept or refuse what the API server has now."""
        body = self.assignments.body
        if body is None:
            if self.assignments.gone:
                self.acceptance.retire()
            return
        if problem := self.acceptance.pop_copy_problem():
            self.events.post(Event(WARNING, problem.reason, "Ignore", problem.message), body)
        self.acceptance.offer(body, self.machine.topology)

    def begin(self, began_seconds: float, *, full_resync: bool, failed_before: int) -> Pass:
        """A pass that starts from what is known now."""
        accepted, kubelet = self.acceptance.accepted, self.kubelet
        return Pass(
            began_seconds=began_seconds,
            full_resync=full_resync,
            failed_before=failed_before,
            topology=self.machine.topology,
            body=self._body(),
            spec=accepted.spec if accepted is not None else None,
            generation=self.acceptance.generation,
            received_seconds=self.assignments.received_at,
            conflict=kubelet.conflict,
            pins_cpus=kubelet.pins_cpus,
            pinned=kubelet.containers,
        )

    def _body(self) -> Body | None:
        """The NodeAssignment, with what is reported of it wherever that is."""
        body = self.assignments.body
        if body is None or not (reported := self.reported()):
            return body
        return {**body, "status": reported}

    def states(self) -> States:
        """What each of them has to say."""
        refusal, waiting = self.acceptance.refusal, self.acceptance.waiting
        missing = self.kubepods.problem if self.acceptance.enforces else ""
        return {
            Part.ASSIGNMENT: State(
                (refusal,) if refusal is not None else (), (waiting,) if waiting is not None else ()
            ),
            Part.KUBEPODS: _stalled(Reason.KUBEPODS_NOT_FOUND, missing),
            Part.MACHINE: State(note=self.machine.limits),
            Part.LOCAL_COPY: State(
                self.local_copy.obstacles(),
                finishes_soon=self.local_copy.patience_seconds is not None,
            ),
            Part.UNKNOWN_FIELDS: State(note=unknown_note(self.acceptance.unknown)),
            Part.PROCESS: State(note="; ".join(filter(None, (*self.remarks, self.unserved())))),
            Part.WATCH: _stalled(Reason.WATCH_INCOMPLETE, self.kubepods.watch_problem),
        }

    def recheck_seconds(self) -> list[float]:
        """After how many seconds a pass is needed although no event comes."""
        seconds = self.local_copy.patience_seconds
        return [] if seconds is None else [seconds]

    def facts(self) -> Facts:
        """What is known of this node besides a pass."""
        topology = self.machine.topology
        if self._hardware is None or self._hardware[0] != topology:
            self._hardware = (topology, compact_topology(topology))
        content = NodeAssignmentStatus(
            observed_generation=self.acceptance.generation,
            topology=self._hardware[1],
            free_hugepages=tuple(compact_free_hugepages(self.machine.free_hugepages())),
            cgroup=self._cgroup(),
            boot_id=self.boot_id,
        )
        problems = {
            "API server": self.assignments.problem,
            "cgroups": self.kubepods.problem,
            "watch": self.kubepods.watch_problem,
            "local copy": self.local_copy.problem,
        }
        unsaved = Evidence(restart_spec=self.local_copy.restart_spec)
        judged = self.acceptance.judged
        return Facts(content=content, judged=judged, evidence=unsaved, problems=problems)

    def _cgroup(self) -> CgroupStatus | None:
        """The cgroup version and driver of this node; None until the tree is found."""
        if self.kubepods.tree is None:
            return None
        driver = self.kubepods.tree.naming.driver.value
        return CgroupStatus(version=self.kubepods.version.value, driver=driver)


def _stalled(reason: Reason, problem: str) -> State:
    return State((Obstacle(reason, problem),) if problem else ())


def _hardware_fields(machine: Hardware) -> dict[str, object]:
    """What a log line says of the hardware; memory in MiB, by NUMA node."""
    memory = {one.id: one.memory_bytes >> 20 for one in machine.topology.numa_nodes}
    fields = {"online": machine.topology.online, "memory_mib": memory}
    return fields | ({"limits": machine.limits} if machine.limits else {})
