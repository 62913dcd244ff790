"""The loop: accept, converge, report. Woken by events; each pass enforces the whole state."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Obstacle, internal_error
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopyWriter
from numapin_enforcer.assignment.log_fields import log_fields
from numapin_enforcer.assignment.watch import AssignmentWatch
from numapin_enforcer.background import BackgroundUpdates
from numapin_enforcer.cgroups.errors import CgroupError, CgroupReadOnlyError
from numapin_enforcer.cgroups.kubepods import KubepodsFinder, PodTree
from numapin_enforcer.goals import AssignmentGoal, Goal, ReleaseGoal
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.node.heartbeat import Progress
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.reconciler import Converged, Reconciler
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.status.reporter import Kernel, PassResult, StatusReporter
from numapin_enforcer.telemetry.foreign_tasks import ForeignTasks
from numapin_enforcer.telemetry.passes import Pass
from numapin_enforcer.threads.check import ThreadCheck
from numapin_enforcer.watched_pods import WatchedPods

LOG: Final = logging.getLogger(__name__)

SEARCH_SECONDS: Final = 0.5
"""How often to look for the kubelet's cgroups while there are none."""

RETRY_SECONDS: Final = 0.1
"""How soon to try again after a failed pass; doubles up to the time between two resyncs."""


@dataclass(eq=False)
class Agent:
    """Makes the node match its assignment, and reports what the kernel has."""

    assignments: AssignmentWatch
    acceptance: Acceptance
    local_copy: LocalCopyWriter
    machine: Machine
    kubepods: KubepodsFinder
    background: BackgroundUpdates
    reporter: StatusReporter
    wake: asyncio.Event
    kubelet: KubeletPins
    threads: ThreadCheck
    foreign: ForeignTasks
    resync_seconds: float
    clock: Clock = field(default_factory=SystemClock)
    progress: Progress = field(default_factory=Progress)
    """Is told of each pass; a standby fences while passes do nothing."""
    on_pass: Callable[[Pass], object] = bool
    """Called at the end of each pass; must be quick."""

    def __post_init__(self) -> None:
        self._schedule = Schedule(self.resync_seconds, RETRY_SECONDS)
        gate, names = self.background.memory.gate, self.background.names
        self._pods = WatchedPods(
            self.kubepods, gate, lambda: names.known, self.wake, self._schedule, self.clock
        )
        self._holding = self.acceptance.enforces
        """Whether cpusets of ours may be in force, which must be released with the assignment."""

    async def run(self) -> None:
        """Make passes until cancelled; every pin stays in force then."""
        try:
            while True:
                began_seconds = time.thread_time()
                self._supervised_pass()
                spent_seconds = time.thread_time() - began_seconds
                self._schedule.note_work(spent_seconds, self.clock.monotonic())
                rest_seconds = self._schedule.rest_seconds(self.clock.monotonic())
                self.progress.expect(rest_seconds)
                await self.clock.sleep(rest_seconds)
                await self._wait()
        finally:
            self._pods.close()

    async def _wait(self) -> None:
        """Wait for an event, or until a pass is due; only meanwhile the kernel's wake the loop."""
        self._pods.listen()
        wait_seconds = self._wait_seconds()
        self.progress.expect(wait_seconds)
        await self.clock.wait(self.wake, wait_seconds)
        self.wake.clear()
        self._pods.pause()

    def _wait_seconds(self) -> float:
        seconds = self._schedule.wait_seconds(self.clock.monotonic())
        searching = SEARCH_SECONDS if self.kubepods.tree is None else None
        others = (searching, self.reporter.recheck_seconds, self.background.recheck_seconds)
        return min((seconds, *(one for one in others if one is not None)))

    def _supervised_pass(self) -> None:
        """One pass. After an unexpected error the next one starts from nothing, as a restart would.

        The process goes on: its death would leave only the standby, which stands in now as well,
        until it has restarted, and the next process would fail alike.
        """
        try:
            self._pass()
        except Exception as error:
            LOG.exception("a pass failed unexpectedly, it will be retried")
            self._pods.close()
            self._schedule.note_unreadable()
            self.progress.passed(in_vain=True)
            self.reporter.failed(internal_error("a pass over the cgroups", error))
        self.reporter.health.remark = self.progress.problem

    def _pass(self) -> None:
        began_seconds = self.clock.monotonic()
        full = self._schedule.resync_due(began_seconds)
        self._observe_node(full_resync=full)
        self._accept()
        done, unreadable = Converged(), None
        try:
            if (pods := self._pods.open()) is not None:
                done = self._enforce(pods, full_resync=full)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            unreadable = Obstacle(error.reason, str(error))
            self._schedule.note_unreadable()
        else:
            self._schedule.note_pass(began_seconds, resynced=full, complete=done.settled)
        failed_passes, resynced = self._schedule.failed_passes, full and unreadable is None
        pinned, failures = self.kubelet.containers, done.failures
        result = PassResult(
            self.kubelet.conflict, unreadable, failures, failed_passes, resynced, pinned
        )
        background = self.background.report(failed_passes)
        threads = self.threads
        kernel = Kernel(
            done.tree,
            done.desired,
            threads.wide,
            threads.note,
            self.foreign.found,
            threads.inherited,
        )
        self.reporter.report(result, kernel, background)
        self.kubelet.log_conflict()  # last, so that it is the last line of the log
        self.background.need_list_since(self.reporter.population.newest_deserted_at)
        self._note(done, began_seconds)
        self.progress.passed(in_vain=unreadable is not None or _is_read_only(done))

    def _note(self, done: Converged, began_seconds: float) -> None:
        """Have the pass counted."""
        accepted = self.acceptance.accepted
        self.on_pass(
            Pass(
                began_seconds,
                self.clock.monotonic(),
                accepted.spec if accepted is not None else None,
                self.machine.topology,
                done.tree,
                done.desired,
                self.reporter.summary,
                len(done.made),
                len(done.failures),
                self.acceptance.generation,
                self.assignments.received_at,
            )
        )

    def _observe_node(self, *, full_resync: bool) -> None:
        if self.machine.rescan(pages=full_resync or self.kubepods.tree is None):
            LOG.info("the hardware changed", extra=_hardware_fields(self.machine))
        self.kubelet.observe(full_resync=full_resync)
        if full_resync:
            outdated = self.kubelet.outdated() or self.background.names.outdated
            self.reporter.health.outdated = outdated
            if self.kubepods.moved():
                self._pods.close()
                self.reporter.driver_changed()

    def _accept(self) -> None:
        """Accept or refuse what the API server has now."""
        body = self.assignments.body
        if body is None:
            if self.assignments.gone:
                self.acceptance.retire()
            return
        if problem := self.acceptance.pop_copy_problem():
            self.reporter.ignored_copy(problem, body)
        self.reporter.resume(body)
        self.acceptance.offer(body, self.machine.topology)

    def _enforce(self, pods: PodTree, *, full_resync: bool) -> Converged:
        accepted = self.acceptance.accepted
        if accepted is not None and self.acceptance.enforces and not self.kubelet.conflict:
            self._holding = True
            self.local_copy.want(accepted)
        reconciler, goal = self._pods.reconciler(pods), self._goal()
        if goal is None:
            pinned = bool(self.kubelet.conflict) and self.acceptance.enforces
            untouched = accepted is None or pinned
            self.background.rest(pods, untouched=untouched, full_resync=full_resync)
            self.threads.rest()
            return reconciler.observe(full_resync=full_resync)
        done = reconciler.converge(goal, full_resync=full_resync)
        done = self._check_threads(reconciler, goal, done, resynced=full_resync)
        spec = accepted.spec if accepted and isinstance(goal, AssignmentGoal) else None
        external = self.background.external(done.drifts, pods.naming)
        if self.kubelet.conflict:
            self.background.rest(pods, untouched=False, full_resync=full_resync)
        else:
            self.background.update(spec, pods, done, full_resync=full_resync)
        for drift in external:
            self.reporter.drifted(drift)
        if done.tree is None:
            self._pods.close()
        elif accepted and spec is None and done.finished and self.background.names_complete:
            self._holding = False
            self.background.clear_slices(done.tree, pods.naming)
            self.local_copy.want(accepted)
        for failure in done.failures if not self._schedule.failed_passes else ():
            meant = done.desired.get(failure.write.path)
            about = log_fields(meant.container if meant is not None else None)
            LOG.warning("a cgroup write was refused", extra=about | {"error": failure.error})
        return done

    def _check_threads(
        self, reconciler: Reconciler, goal: Goal, done: Converged, *, resynced: bool
    ) -> Converged:
        """Look for tasks on CPUs that are not theirs; have wide threads follow their cgroup."""
        if done.tree is None or not isinstance(goal, AssignmentGoal):
            self.threads.rest()
            return done
        if resynced:
            self.foreign.look(done.tree, done.desired)
        naming = reconciler.naming
        paths = self.threads.look(done.tree, done.desired, naming, resynced=resynced)
        if paths and not self.background.memory.gate.is_moving:
            done = reconciler.set_again(goal, done, paths)
            if done.tree is not None:
                self.threads.look_again(done.tree)
        return done

    def _goal(self) -> AssignmentGoal | ReleaseGoal | None:
        """What to bring the cgroups to; None to leave them alone."""
        accepted, topology = self.acceptance.accepted, self.machine.topology
        enforces, pins = self.acceptance.enforces, self.kubelet.pins_cpus
        if accepted is None or (self.kubelet.conflict and (enforces or not pins)):
            return None
        found = self.background.memory.found_mems
        if enforces:
            names, by_runtime = self.background.names.known, self.background.by_runtime
            return AssignmentGoal(accepted.spec, topology, names, found, by_runtime)
        return ReleaseGoal(topology, found, keeps_containers=pins) if self._holding else None


def _hardware_fields(machine: Machine) -> dict[str, object]:
    """What a log line says of the hardware; memory in MiB, by NUMA node."""
    memory = {one.id: one.memory_bytes >> 20 for one in machine.topology.numa_nodes}
    fields = {"online": machine.topology.online, "memory_mib": memory}
    return fields | ({"limits": machine.limits} if machine.limits else {})


def _is_read_only(done: Converged) -> bool:
    """Whether no cgroup can be written, so that a new one would not be fenced either."""
    return not done.made and any(
        isinstance(one.error, CgroupReadOnlyError) for one in done.failures
    )
