"""Reports each pass: in the status, by Events, to the probes."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import compact_free_hugepages, compact_topology
from numapin_api.schema.plain import (
    CgroupStatus,
    KubeletContainer,
    NodeAssignmentStatus,
    RuntimeStatus,
)
from numapin_api.topology import Topology
from numapin_client.events import WARNING, Event
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.probes.health import LoopHealth
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopyWriter
from numapin_enforcer.assignment.watch import AssignmentWatch
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.kubepods import KubepodsFinder
from numapin_enforcer.cgroups.memory.unbound import UnboundMemoryReader
from numapin_enforcer.cgroups.tree import OutsideCgroup, Tree
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.node.dra_claims import DraClaims
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.drift import Drift, DriftCount
from numapin_enforcer.plan.inherited_mask import InheritedMask
from numapin_enforcer.plan.wide_threads import WideThreads
from numapin_enforcer.status.conditions import (
    cgroup_obstacles,
    judge,
    lack_obstacles,
    unknown_note,
    unread_note,
)
from numapin_enforcer.status.events import EventPoster
from numapin_enforcer.status.exclusivity import Evidence, bound_pods
from numapin_enforcer.status.other_writers import OtherWriters
from numapin_enforcer.status.population import Population
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.readiness import missing
from numapin_enforcer.status.status_builder import Report, Scene, build_report
from numapin_enforcer.status.summary import Summarizer, Summary
from numapin_enforcer.status.thread_cpus import Intruder, confined

LOG: Final = logging.getLogger(__name__)

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PassResult:
    """What kept a pass from enforcing everything.

    Attributes:
        conflict: why the kubelet's CPU manager must be left alone; empty if it does not pin.
        unreadable: set if the cgroups could not be read.
        failures: the writes that the kernel refused.
        failed_passes: how many passes failed in a row.
        resynced: whether every cgroup was read.
        pinned: the containers that the kubelet pins itself, under a conflict.
    """

    conflict: str
    unreadable: Obstacle | None
    failures: Sequence[Failure]
    failed_passes: int
    resynced: bool = False
    pinned: tuple[KubeletContainer, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """The cgroups as read last, None if there are none, and what each of them must have.

    `wide` are threads that may use more CPUs than their cgroup has; `unseen` says which threads
    are not looked at, or is empty. `foreign` are exclusive containers on whose CPUs other tasks
    run. `inherited` are cgroups whose processes have the CPU affinity of the container runtime.
    """

    tree: Tree | None
    desired: Mapping[str, Desired]
    wide: tuple[WideThreads, ...] = ()
    unseen: str = ""
    foreign: tuple[str, ...] = ()
    inherited: tuple[InheritedMask, ...] = ()


@dataclass(frozen=True, slots=True)
class BackgroundReport:
    """What the background tasks report.

    Attributes:
        runtime: which container runtime runs here; None until it has answered.
        stale_cpus: cgroup to CPUs that the runtime or systemd may still give it, and must not.
        stalled: what a person must repair, the worst first.
        working: what is not finished yet, or is retried.
        note: what the status of a healthy node says besides.
        outside: cgroups of containers outside of the kubelet's tree.
        running: ids of the containers that run, as the runtime listed them a minute ago at most,
            with namespace, pod and name.
        listed_at: when it was asked for that list, on a clock that only goes forward.
        strays: pod's UID and name of the kubelet's containers that are not in the kubelet's tree.
        finishes_soon: something ends in a moment, and changes the status.
    """

    runtime: RuntimeStatus | None
    stale_cpus: Mapping[str, CpuSet]
    stalled: Sequence[Obstacle]
    working: Sequence[Obstacle]
    note: str
    finishes_soon: bool
    outside: tuple[OutsideCgroup, ...] = ()
    running: Mapping[str, str] = field(default_factory=dict)
    listed_at: float = 0.0
    strays: frozenset[tuple[str, str]] = frozenset()


@dataclass(eq=False)
class StatusReporter:
    """What the agent reports of its passes."""

    assignments: AssignmentWatch
    acceptance: Acceptance
    local_copy: LocalCopyWriter
    kubepods: KubepodsFinder
    machine: Machine
    publisher: Publisher
    events: EventPoster
    health: LoopHealth
    claims: DraClaims
    boot_id: str | None = None
    remarks: tuple[str, ...] = ()
    """What this process lacks for as long as it runs, and enforces without."""
    clock: Clock = field(default_factory=SystemClock)
    summary: Summary | None = field(default=None, init=False)
    """Of the last pass; None if the cgroups could not be read."""
    _drifts: DriftCount = field(default_factory=DriftCount, init=False)
    _writers: OtherWriters = field(default_factory=OtherWriters, init=False)
    _hardware: tuple[Topology, dict[str, Any]] | None = field(default=None, init=False)
    _summarized: tuple[tuple[object, ...], Summary] | None = field(default=None, init=False)
    _summarizer: Summarizer = field(default_factory=Summarizer, init=False)
    population: Population = field(default_factory=Population, init=False)
    _unbound: UnboundMemoryReader = field(default_factory=UnboundMemoryReader, init=False)

    @property
    def recheck_seconds(self) -> float | None:
        """When to report again although no event comes; None if that is not needed."""
        return self.population.recheck_seconds

    def drift_causes(self) -> Mapping[str, int]:
        """How many drifts there were, by cause."""
        return self._drifts.causes

    def resume(self, body: Body) -> None:
        """Go on counting drifts from the status that the API server has."""
        self._drifts.resume(body)

    def drifted(self, drift: Drift) -> None:
        """Count an external change that was reverted, and post an Event about it if one is due."""
        self._drifts.add(drift)
        self.events.drifted(drift, self.assignments.body)
        if note := self._writers.note(drift, self.clock.monotonic()):
            LOG.warning("another program keeps changing a cgroup", extra={"why": note})
            event = Event(WARNING, Reason.ANOTHER_WRITER, "Repair", note)
            self.events.post(event, self.assignments.body)

    def ignored_copy(self, problem: Obstacle, body: Body) -> None:
        """Post an Event: the local copy was not usable."""
        self.events.post(Event(WARNING, problem.reason, "Ignore", problem.message), body)

    def driver_changed(self) -> None:
        """Log and post an Event: the kubelet's cgroups are in another tree than before."""
        note = "the kubelet's cgroup driver was changed: its other tree of cgroups is enforced now"
        LOG.warning(note)
        event = Event(WARNING, Reason.CGROUP_DRIVER_CHANGED, "Move", note)
        self.events.post(event, self.assignments.body)

    def report(self, result: PassResult, kernel: Kernel, background: BackgroundReport) -> None:
        """A pass has ended: publish the status, unless it changes in a moment."""
        self.claims.observe(full_resync=result.resynced)
        report = build_report(self._scene(result, kernel, background))
        if not background.finishes_soon:
            self.publisher.publish(report)
        if result.resynced:
            self.publisher.passed()
        problems = {
            "API server": self.assignments.problem,
            "cgroups": self.kubepods.problem,
            "watch": self.kubepods.watch_problem,
            "local copy": self.local_copy.problem,
            "status": self.publisher.problem,
        }
        self.health.passed(missing(problems, report))

    def failed(self, obstacle: Obstacle) -> None:
        """A pass failed unexpectedly: what was reported stays, and the conditions say why."""
        facts = NodeAssignmentStatus(observed_generation=self.acceptance.generation)
        report = Report(facts, judge(obstacle, None, ""), failed=True)
        self.publisher.publish(report)
        self.health.passed(missing({}, report))

    def _scene(self, result: PassResult, kernel: Kernel, background: BackgroundReport) -> Scene:
        accepted = self.acceptance.accepted
        summary = self.summary = self._summary(kernel, background, resynced=result.resynced)
        stalled, working = cgroup_obstacles(result.failures, result.failed_passes)
        lacks = lack_obstacles(summary.lacks if summary else (), result.failed_passes)
        return Scene(
            replace(self._facts(background.runtime), kubelet_containers=result.pinned),
            accepted.spec if accepted is not None else None,
            summary,
            (
                *self._first_obstacles(result),
                *stalled,
                *self.local_copy.obstacles(),
                *lacks[0],
                *background.stalled,
                *self._watch_obstacles(),
            ),
            (
                *filter(None, (self.acceptance.waiting,)),
                *working,
                *background.working,
                *lacks[1],
            ),
            "; ".join(filter(None, self._notes(background, kernel))),
            kernel.foreign,
        )

    def _first_obstacles(self, result: PassResult) -> Iterator[Obstacle]:
        """What keeps everything from being enforced."""
        if result.conflict:
            yield Obstacle(Reason.KUBELET_STATIC_POLICY, result.conflict)
        if self.acceptance.refusal is not None:
            yield self.acceptance.refusal
        if result.unreadable is not None:
            yield result.unreadable
        if self.kubepods.problem and self.acceptance.enforces:
            yield Obstacle(Reason.KUBEPODS_NOT_FOUND, self.kubepods.problem)

    def _watch_obstacles(self) -> Iterator[Obstacle]:
        if self.kubepods.watch_problem:
            yield Obstacle(Reason.WATCH_INCOMPLETE, self.kubepods.watch_problem)

    def _notes(self, background: BackgroundReport, kernel: Kernel) -> Iterator[str]:
        yield self.machine.limits
        yield background.note
        yield unknown_note(self.acceptance.unknown)
        yield self._unread(kernel)
        yield self._writers.describe(self.clock.monotonic())
        yield self.claims.problem
        yield from self.remarks
        yield kernel.unseen

    def _unread(self, kernel: Kernel) -> str:
        accepted = self.acceptance.accepted
        unread = kernel.tree.unread if kernel.tree is not None else ()
        return unread_note(unread, accepted.spec if accepted is not None else None)

    def _facts(self, runtime: RuntimeStatus | None) -> NodeAssignmentStatus:
        topology = self.machine.topology
        if self._hardware is None or self._hardware[0] != topology:
            self._hardware = (topology, compact_topology(topology))
        return NodeAssignmentStatus(
            observed_generation=self.acceptance.generation,
            topology=self._hardware[1],
            free_hugepages=tuple(compact_free_hugepages(self.machine.free_hugepages())),
            claims=self.claims.on(topology.online),
            unbound_memory=self._unbound.found,
            drift_count=self._drifts.total,
            drift_causes=self._drifts.causes,
            cgroup=self._cgroup(),
            runtime=runtime,
            boot_id=self.boot_id,
        )

    def _cgroup(self) -> CgroupStatus | None:
        """The cgroup version and driver of this node; None until the tree is found."""
        if self.kubepods.tree is None:
            return None
        driver = self.kubepods.tree.naming.driver.value
        return CgroupStatus(version=self.kubepods.version.value, driver=driver)

    def _summary(
        self, kernel: Kernel, background: BackgroundReport, *, resynced: bool
    ) -> Summary | None:
        """What the kernel has; None if it could not be read. Computed when something changed."""
        pods, accepted = self.kubepods.tree, self.acceptance.accepted
        if kernel.tree is None or pods is None:
            self.population.forget()
            return None
        if accepted is None:
            return Summary()
        now_seconds, population = self.clock.monotonic(), self.population
        files, naming, names = pods.files, pods.naming, background.running
        if resynced and len(self.machine.topology.numa_nodes) > 1:
            bound = bound_pods(accepted.spec, kernel.tree, kernel.desired)
            self._unbound.look(kernel.tree, naming, bound, files.read_numa_stat, now_seconds)
        population.update(
            kernel.tree, kernel.desired, files.has_tasks, now_seconds, resynced=resynced
        )
        deserted = frozenset(
            path
            for path in population.deserted_at(background.listed_at)
            if naming.parse(path).container_id in names
        )
        evidence = Evidence(
            self.local_copy.restart_spec,
            background.stale_cpus,
            (population.starting | population.deserted) - deserted,
            deserted,
            background.outside,
            background.strays,
            tuple(Intruder.of(one, naming, names) for one in kernel.wide),
            tuple(confined(kernel.inherited, kernel.tree, naming, names, self.machine.topology)),
        )
        arguments = (accepted.spec, kernel.tree, kernel.desired, naming, evidence)
        if self._summarized is None or self._summarized[0] != arguments:
            self._summarized = (arguments, self._summarizer.summarize(*arguments))
        return self._summarized[1]
