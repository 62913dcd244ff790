"""The loop: observe, plan, apply, read back, report. Woken by events; each pass sees everything."""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from numapin_api.conditions import Obstacle, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.hardware import compact_topology
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus, RuntimeStatus
from numapin_client.events import WARNING, Event
from numapin_enforcer.cfs_quota.plan import cgroups_without_limit
from numapin_enforcer.cgroups.kubepods import PodTree
from numapin_enforcer.cgroups.naming import Kind
from numapin_enforcer.cgroups.tree import CgroupError, Tree
from numapin_enforcer.node.kubelet_checkpoint import checkpoint_replaced, static_policy_conflict
from numapin_enforcer.parts import Parts
from numapin_enforcer.plan.drift import DriftCount
from numapin_enforcer.reconciler import AssignmentGoal, Converged, Reconciler, ReleaseGoal
from numapin_enforcer.runtime.previous import PreviousUpdates
from numapin_enforcer.runtime.updater import QUOTA_LIFTED, find_containers, resources_to_send
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.status.conditions import Report
from numapin_enforcer.status.summary import Doubt, Summary, summarize
from numapin_enforcer.status.verdict import (
    Scene,
    build_report,
    cgroup_obstacles,
    moving,
    remembered,
)
from numapin_enforcer.systemd.slices import SliceSets, qos_slices, slice_sets

LOG: Final = logging.getLogger(__name__)

SEARCH_SECONDS: Final = 0.5
"""How often to look for the kubelet's cgroups while there are none."""

RETRY_SECONDS: Final = 0.1
"""How soon to try again what the kernel did not take; doubles up to the slow pass."""


class Agent:
    """Makes the node match its assignment, and says what the kernel answers."""

    def __init__(
        self, parts: Parts, wake: asyncio.Event, kubelet_state_dir: Path, resync_seconds: float
    ) -> None:
        self._parts, self._wake = parts, wake
        self._kubelet_state_dir, self._resync_seconds = kubelet_state_dir, resync_seconds
        self._drifts = DriftCount()
        self._kubelet_policy = ""
        self._holding = parts.intake.enforces
        self._schedule = Schedule(resync_seconds, RETRY_SECONDS)
        kept = parts.intake.accepted
        self._previous = PreviousUpdates(kept.spec if kept and self._holding else None)
        self._remembered: dict[str, CpuSet] = {}
        self._reconciler: Reconciler | None = None
        self._told: tuple[Converged, Doubt, Summary] | None = None
        self._hardware = compact_topology(parts.machine.topology)

    async def run(self) -> None:
        """Make passes until cancelled; every pin stays in force then."""
        try:
            while True:
                began = time.thread_time()
                self._pass(time.monotonic())
                spent_seconds = time.thread_time() - began
                await asyncio.sleep(self._schedule.rest_seconds(spent_seconds, time.monotonic()))
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_seconds()):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            self._close_host()

    def _pause_seconds(self) -> float:
        """How long nothing need be done unless something happens."""
        wait_seconds = self._schedule.wait_seconds(time.monotonic())
        return min(wait_seconds, SEARCH_SECONDS) if self._parts.host.tree is None else wait_seconds

    def _pass(self, began_seconds: float) -> None:
        parts, everything = self._parts, self._schedule.resync_due(began_seconds)
        if parts.machine.rescan():
            self._hardware = compact_topology(parts.machine.topology)
            LOG.info("the hardware changed", extra={"online": parts.machine.topology.online})
        if everything:
            self._kubelet_policy = static_policy_conflict(self._kubelet_state_dir)
            parts.health.outdated = checkpoint_replaced(self._kubelet_state_dir)
        self._take_in()
        enforced, broken = Converged(), None
        try:
            if (pods := self._open_host()) is not None:
                enforced = self._enforce(pods, everything=everything)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            broken = Obstacle(error.reason, str(error))
            self._schedule.note_unreadable()
        else:
            complete = enforced.complete
            self._schedule.note_pass(began_seconds, resynced=everything, complete=complete)
        report = build_report(self._scene(enforced, broken))
        if not (parts.slices.finishes_soon or parts.mover.settling):
            parts.reporter.tell(report)
        parts.health.passed(dict(self._missing(report)))

    def _take_in(self) -> None:
        """Judge what the API server says now; the count of drifts goes on from its last word."""
        body = self._parts.assignments.body
        if body is not None:
            if problem := self._parts.intake.pop_copy_problem():
                event = Event(WARNING, problem.reason, "Ignore", problem.message)
                self._parts.teller.tell(event, body)
            self._drifts.resume(body)
            if self._parts.intake.offer(body, self._parts.machine.topology):
                refusal = self._parts.intake.refusal
                extra = {"generation": self._parts.intake.generation}
                if refusal is None:
                    LOG.info("took an assignment", extra=extra)
                else:
                    LOG.warning("refused an assignment", extra=extra | {"why": refusal.message})

    def _enforce(self, pods: PodTree, *, everything: bool) -> Converged:
        goal = self._goal()
        if goal is None:
            self._rest(pods, look=everything)
            return self._reconciler_of(pods).observe(full_resync=everything)
        enforced = self._reconciler_of(pods).converge(goal, full_resync=everything)
        spec = goal.spec if isinstance(goal, AssignmentGoal) else None
        lifts = spec is not None and spec.cpu_quota == "Unlimited"
        free = cgroups_without_limit(enforced.desired, pods.layout) if lifts else ()
        self._limit(pods, free, look=everything)
        for drift in enforced.drifts:
            self._drifts.add(drift)
            self._parts.slices.note_external_change(drift.path)
            place = pods.layout.place(drift.path)
            if place.kind is Kind.CONTAINER:
                self._parts.recorder.note_external_change(place.container_id, drift.found[0])
            self._parts.teller.drifted(drift, self._parts.assignments.body)
        if enforced.tree is not None:
            self._parts.mover.move(enforced.moves, pods.files)
            self._follow(spec, pods, enforced, enforced.tree)
            if everything:
                ids = {id_ for id_, _ in find_containers(enforced.tree, pods.layout)}
                self._parts.names.forget_except(ids)
        elif enforced.settled:
            self._close_host()
        for failure in enforced.failures if not self._schedule.failed_passes else ():
            LOG.warning("a write was refused", extra={"error": failure.error})
        return enforced

    def _rest(self, pods: PodTree, *, look: bool) -> None:
        """Touch nothing; without a kubelet that does it itself, give limits back still."""
        self._parts.mover.move((), pods.files)
        if self._kubelet_policy:
            self._parts.recorder.pause()
            self._parts.slices.pause()
            self._parts.limits.pause()
        self._limit(pods, (), look=look)

    def _limit(self, pods: PodTree, free: tuple[str, ...], *, look: bool) -> None:
        """See to CFS limits, where they are ours to see to."""
        if not self._kubelet_policy and self._parts.intake.accepted is not None:
            self._parts.limits.want(free, pods.files, pods.layout.root, full_resync=look)

    def _goal(self) -> AssignmentGoal | ReleaseGoal | None:
        """What to enforce; None where nothing is to be touched."""
        intake, names = self._parts.intake, self._parts.names.known
        if self._kubelet_policy or intake.accepted is None:
            return None
        if intake.enforces:
            self._holding = True
            self._parts.keeper.want(intake.accepted)
            return AssignmentGoal(intake.accepted.spec, self._parts.machine.topology, names)
        return ReleaseGoal(self._parts.machine.topology) if self._holding else None

    def _follow(
        self, spec: NodeAssignmentSpec | None, pods: PodTree, enforced: Converged, tree: Tree
    ) -> None:
        """Ask the runtime for what is not known, and have it told what is in force."""
        found = dict(find_containers(tree, pods.layout))
        recorder, intake, names = self._parts.recorder, self._parts.intake, self._parts.names
        self._previous.update(found, names.known, recorder.sent_ids | names.unlisted)
        assigned = {one.pod_uid for one in spec.containers} if spec else ()
        wanted = (id_ for id_, (_, uid) in found.items() if uid in assigned)
        unnamed = names.need({*wanted, *self._previous.ids})
        if spec is None and enforced.complete and not unnamed and intake.accepted is not None:
            self._holding = False
            self._parts.slices.want(dict.fromkeys(qos_slices(tree, pods.layout), SliceSets()))
            self._parts.keeper.want(intake.accepted)
        self._record(enforced, tree, {id_: found[id_][0] for id_ in found.keys() - unnamed})
        self._remembered = {found[id_][0]: cpus for id_, cpus in recorder.stale_cpus.items()}
        self._remembered |= self._previous.unnamed(spec, names.known)
        if spec is not None:
            self._parts.slices.want(slice_sets(enforced.desired, tree, pods.layout))

    def _record(self, enforced: Converged, tree: Tree, named: Mapping[str, str]) -> None:
        """Tell the runtime what the containers in `named` have; any other may be an owner."""
        recorder, limits = self._parts.recorder, self._parts.limits
        sent, records = self._previous.records(self._parts.names.known), {}
        for id_, path in named.items():
            told = recorder.sent(id_) or sent.get(id_)
            if told is None and limits.was_lifted(path):
                told = QUOTA_LIFTED
            one = resources_to_send(enforced.desired, tree, path, told)
            if one is not None and one is not sent.get(id_):
                quota_us = limits.runtime_quota_us(path, told.quota_us if told else 0)
                records[id_] = replace(one, quota_us=quota_us)
        recorder.want(records, sent)

    def _scene(self, enforced: Converged, broken: Obstacle | None) -> Scene:
        parts = self._parts
        stalled, working = cgroup_obstacles(enforced.failures, self._schedule.failed_passes)
        failed_passes = self._schedule.failed_passes
        slow_stalled, slow_working = cgroup_obstacles(parts.mover.failures, failed_passes)
        before = (self._hands_off(), parts.intake.refusal, broken)
        problem = parts.names.problem
        blind = parts.host.tree.watch.problem if parts.host.tree else ""
        return Scene(
            self._facts(),
            parts.intake.accepted.spec if parts.intake.accepted else None,
            self._summary(enforced),
            (
                *(one for one in before if one is not None),
                *stalled,
                *slow_stalled,
                *([Obstacle(problem.reason, str(problem))] if problem else []),
                *([Obstacle(Reason.WATCH_INCOMPLETE, blind)] if blind else []),
            ),
            (
                *([parts.intake.waiting] if parts.intake.waiting else []),
                *working,
                *slow_working,
                *moving(parts.mover.slow),
                *parts.limits.obstacles(),
                *parts.slices.obstacles(),
                *parts.recorder.obstacles(),
                *remembered(self._remembered),
            ),
            parts.slices.note,
        )

    def _summary(self, enforced: Converged) -> Summary | None:
        """What the kernel has; the same answer while it is the same pass that is told of."""
        pods, accepted = self._parts.host.tree, self._parts.intake.accepted
        if enforced.tree is None or pods is None:
            return None
        if accepted is None:
            return Summary()
        lingering = {**self._parts.slices.stale_cpus, **self._remembered}
        doubt = Doubt(self._parts.keeper.restart_spec, lingering)
        if self._told is None or self._told[0] is not enforced or self._told[1] != doubt:
            told = summarize(accepted.spec, enforced.tree, enforced.desired, pods.layout, doubt)
            self._told = (enforced, doubt, told)
        return self._told[2]

    def _hands_off(self) -> Obstacle | None:
        why = self._kubelet_policy
        return Obstacle(Reason.KUBELET_STATIC_POLICY, why) if why else None

    def _facts(self) -> NodeAssignmentStatus:
        version = self._parts.names.runtime_version
        return NodeAssignmentStatus(
            observed_generation=self._parts.intake.generation,
            topology=self._hardware,
            drift_count=self._drifts.total,
            drift_causes=self._drifts.causes,
            cgroup=self._parts.host.status(),
            runtime=RuntimeStatus(name=version.name, version=version.version) if version else None,
        )

    def _missing(self, report: Report) -> Iterator[tuple[str, str]]:
        """What keeps us from being ready, for /readyz."""
        parts = self._parts
        told = {
            "API server": parts.assignments.problem,
            "cgroups": parts.host.problem,
            "watch": parts.host.tree.watch.problem if parts.host.tree else "",
            "local copy": parts.keeper.problem,
            "status": parts.reporter.problem,
        }
        yield from ((name, problem) for name, problem in told.items() if problem)
        for verdict in report.verdicts:
            if verdict.type == "Ready" and not verdict.holds:
                yield "enforcement", f"{verdict.reason}: {verdict.message}"

    def _open_host(self) -> PodTree | None:
        host = self._parts.host
        if host.tree is not None:
            return host.tree
        opened = host.open()
        if opened is not None:
            asyncio.get_running_loop().add_reader(opened.watch.fileno(), self._wake.set)
            LOG.info("found the kubelet's cgroups", extra={"root": opened.layout.root})
        return opened

    def _close_host(self) -> None:
        host = self._parts.host
        if host.tree is not None:
            asyncio.get_running_loop().remove_reader(host.tree.watch.fileno())
            host.close()
            self._reconciler = None

    def _reconciler_of(self, pods: PodTree) -> Reconciler:
        if self._reconciler is None:
            self._reconciler = Reconciler(pods.files, pods.view, pods.layout)
        return self._reconciler
