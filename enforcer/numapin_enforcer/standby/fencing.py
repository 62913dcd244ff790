"""Keeps pods off exclusive CPUs of other pods while the node's enforcer is away."""

import logging
import select
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NoReturn

from numapin_api.topology import Topology
from numapin_enforcer.assignment.copy_file import CopyFile
from numapin_enforcer.assignment.spec import AssignedSpec
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods import KubepodsFinder, PodTree
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate, PatientFiles
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.node.heartbeat import Heartbeat
from numapin_enforcer.node.kubelet_checkpoint import static_policy_conflict
from numapin_enforcer.node.lock import LockWait, NodeLock
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.plan.fence import breached, fence, fence_new
from numapin_enforcer.plan.writes import Held, Plan, plan
from numapin_enforcer.reconciler import Converged, Reconciler
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.settings import NodeSettings
from numapin_enforcer.standby.saved_spec import SavedSpec

LOG: Final = logging.getLogger(__name__)

# Log texts that the lab's chaos run and the benchmarks search for.
STANDING_BY: Final = "standing by"
ENFORCER_AWAY: Final = "the enforcer does not run: keeping new pods off exclusive CPUs of others"
ENFORCER_HANGS: Final = "the enforcer hangs: keeping new cgroups off exclusive CPUs of others"
FENCED: Final = "fenced"

RESYNC_SECONDS: Final = 1.0
"""How often to read everything although no event came."""

RETRY_SECONDS: Final = 0.002
"""How soon to try again after a failed pass; doubles up to `RESYNC_SECONDS`.

The common cause is a pod that its runtime is setting up at this moment.
"""


@dataclass(frozen=True, slots=True)
class FenceGoal:
    """No cgroup has exclusive CPUs of another pod, by the last accepted spec."""

    spec: AssignedSpec
    topology: Topology

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What each cgroup has, without exclusive CPUs of other pods."""
        return fence(self.spec, tree, cache.naming, self.topology)

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """Nothing is written unless a cgroup has CPUs that it must not use."""
        return plan(tree, desired, held) if breached(tree, desired) else Plan(())


@dataclass(frozen=True, slots=True)
class NewCgroupsGoal(FenceGoal):
    """No new cgroup has exclusive CPUs of another pod; all that was ever set stays."""

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What each cgroup has; a new one without exclusive CPUs of other pods."""
        return fence_new(self.spec, tree, cache.naming, self.topology)


class Standby:
    """Waits until the enforcer is away, fences pods meanwhile, and stops when it is back.

    Raises:
        NoCpusetError: no cpuset controller is mounted.
        InvalidIdError: the cgroup root is no cgroup's name.
        DiscoveryError: not one online CPU can be read.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._kubepods = KubepodsFinder(settings.cgroupfs, settings.cgroup_root)
        self._machine = Machine(settings.sysfs, settings.procfs)
        self._saved = SavedSpec(CopyFile(settings.state_dir, settings.node_name))
        self._lock = NodeLock(settings.state_dir)
        self._heartbeat = Heartbeat(settings.run_dir)
        self._unwatched = ""

    def run(self) -> NoReturn:
        """Stand by until the process is ended.

        Raises:
            OSError: the lock cannot be opened.
        """
        LOG.info(STANDING_BY)
        while True:
            self._wait_for_lock()
            LOG.info(ENFORCER_AWAY)
            with closing(self._kubepods):
                self._fence_until_the_enforcer_is_back()
            LOG.info("the enforcer runs again")

    def _wait_for_lock(self) -> None:
        """Return once the enforcer has ended; fence new cgroups while it hangs."""
        waiting = LockWait(self._lock, RESYNC_SECONDS)
        look_seconds = RESYNC_SECONDS if self._settings.run_dir is not None else None
        while not waiting.acquired(look_seconds):
            if self._heartbeat.is_stale():
                LOG.warning(ENFORCER_HANGS)
                with closing(self._kubepods):
                    self._fence_new_while_hung(waiting)

    def _fence_new_while_hung(self, waiting: LockWait) -> None:
        """Make passes without the lock, which write only what nothing else has set."""
        fencing = Fencing(self._machine, goal=NewCgroupsGoal)
        while not waiting.acquired(0):
            if not self._heartbeat.is_stale():
                LOG.info("the enforcer goes on")
                return
            self._make_pass(fencing)

    def _fence_until_the_enforcer_is_back(self) -> None:
        """Make passes until an enforcer has the lock; called, and each pass made, with it held."""
        fencing = Fencing(self._machine)
        while True:
            self._make_pass(fencing, self._lock.release)
            if not self._lock.try_acquire():
                return

    def _make_pass(self, fencing: "Fencing", ended: Callable[[], object] = bool) -> None:
        """Make one pass, call `ended`, rest, and wait until the next pass is due."""
        began = time.thread_time()
        pods, wait_seconds = None, RESYNC_SECONDS
        try:
            pods = self._kubepods.open()
            if pods is not None and (spec := self._spec_to_enforce()) is not None:
                wait_seconds = fencing.make_pass(pods, spec)
            self._log_unwatched()
        except Exception:  # no other process fences meanwhile; one pass is one unit of work
            LOG.exception("a pass failed unexpectedly, it will be retried")
            self._kubepods.close()
            pods = None
            fencing.forget()
        ended()
        time.sleep(fencing.rest_seconds(time.thread_time() - began))
        wait_for_event(pods, fencing, wait_seconds)

    def _log_unwatched(self) -> None:
        if (problem := self._kubepods.watch_problem) != self._unwatched:
            self._unwatched = problem
            if problem:
                LOG.warning("new pods are fenced late", extra={"why": problem})

    def _spec_to_enforce(self) -> AssignedSpec | None:
        conflict = static_policy_conflict(self._settings.kubelet_state_dir)
        return None if conflict else self._saved.spec()


def wait_for_event(pods: PodTree | None, fencing: "Fencing", seconds: float) -> None:
    """Wait for an event that matters, for so many seconds at most."""
    watches = [pods.watch] if pods is not None else []
    end_seconds = time.monotonic() + seconds
    while (left_seconds := end_seconds - time.monotonic()) > 0:
        readable, _, _ = select.select(watches, [], [], left_seconds)
        began_seconds = time.thread_time()
        is_news = any(watch.collect() for watch in readable)
        spent_seconds = time.thread_time() - began_seconds
        if is_news:
            fencing.rest_seconds(spent_seconds)  # makes the rest after the next pass longer
            return
        if readable:
            time.sleep(fencing.vain_read_seconds(spent_seconds))


class Fencing:
    """The passes of one period in which the enforcer is away."""

    def __init__(
        self,
        machine: Machine,
        monotonic: Callable[[], float] = time.monotonic,
        goal: type[FenceGoal] = FenceGoal,
    ) -> None:
        self._machine, self._monotonic, self._goal = machine, monotonic, goal
        self._schedule = Schedule(RESYNC_SECONDS, RETRY_SECONDS)
        self._reconciler: Reconciler | None = None

    def make_pass(self, pods: PodTree, spec: AssignedSpec) -> float:
        """Make one pass.

        Args:
            pods: the same tree at each call.
            spec: the last accepted one.

        Returns:
            The seconds until the next pass is due if no event comes.
        """
        if self._reconciler is None:
            # The enforcer cannot end, nor go on, while the kernel moves memory for it.
            files = PatientFiles(pods.files, MoveGate(left_moving=True))
            self._reconciler = Reconciler(files, pods.snapshot, pods.naming)
        self._machine.rescan()
        began = self._monotonic()
        full = self._schedule.resync_due(began)
        goal = self._goal(spec, self._machine.topology)
        try:
            done = self._reconciler.converge(goal, full_resync=full)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            self._schedule.note_unreadable()
        else:
            self._log(done)
            self._schedule.note_pass(began, resynced=full, complete=done.complete)
        return self._schedule.wait_seconds(self._monotonic())

    def forget(self) -> None:
        """Start again from nothing; the next pass may be of another tree."""
        self._reconciler = None

    def rest_seconds(self, spent_seconds: float) -> float:
        """How long to rest after a pass that took so much CPU time, whatever happens."""
        return self._schedule.rest_seconds(spent_seconds, self._monotonic())

    def vain_read_seconds(self, spent_seconds: float) -> float:
        """How long to read no events after a read in which none mattered."""
        return self._schedule.vain_read_seconds(spent_seconds, self._monotonic())

    def _log(self, done: Converged) -> None:
        for write in done.made:
            LOG.info(FENCED, extra={"cgroup": write.path, write.setting: str(write.value)})
        for failure in done.failures if not self._schedule.failed_passes else ():
            LOG.warning("a cgroup write was refused", extra={"error": failure.error})
