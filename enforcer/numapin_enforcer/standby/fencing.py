"""Keeps pods off exclusive CPUs of other pods while the node's enforcer is away."""

import logging
import select
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Final, NoReturn, Protocol

from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.assignment.copy_file import CopyFile
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder, NewPods, PodTree, PodWatch
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate, PatientFiles
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.node.heartbeat import Heartbeat
from numapin_enforcer.node.kubelet_checkpoint import static_policy_conflict
from numapin_enforcer.node.lock import LockWait, NodeLock
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.plan.desired import Rules
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.settings import NodeSettings
from numapin_enforcer.standby.goals import FenceGoal, NewCgroupsGoal
from numapin_enforcer.standby.saved_spec import SavedSpec

LOG: Final = logging.getLogger(__name__)

# Log texts that the lab's chaos run and the benchmarks search for.
STANDING_BY: Final = "standing by"
ENFORCER_AWAY: Final = "the enforcer does not run: keeping new pods off exclusive CPUs of others"
ENFORCER_HANGS: Final = (
    "the enforcer hangs, or can do nothing: keeping new cgroups off exclusive CPUs of others"
)
FENCED: Final = "fenced"

RESYNC_SECONDS: Final = 1.0
"""How often to read everything although no event came."""

RETRY_SECONDS: Final = 0.002
"""How soon to try again after a failed pass; doubles up to `RESYNC_SECONDS`.

The common cause is a pod that its runtime is setting up at this moment.
"""


class Writing(Protocol):
    """The right to write cgroups, which the enforcer takes back at any moment."""

    def try_acquire(self) -> bool:
        """Take it; False if the enforcer has it."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


class _WhileHung:
    """The enforcer keeps its lock, and makes no use of it."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.try_acquire = heartbeat.is_stale

    def release(self) -> None:
        """There is nothing to give back."""


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
        self._machine = Machine(settings.sysfs, settings.procfs, self._kubepods.allowed)
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
        """Return once the enforcer has ended; fence new cgroups while it hangs or does nothing."""
        waiting = LockWait(self._lock, RESYNC_SECONDS)
        look_seconds = RESYNC_SECONDS if self._settings.run_dir is not None else None
        while not waiting.acquired(look_seconds):
            if self._heartbeat.is_stale():
                LOG.warning(ENFORCER_HANGS)
                with closing(self._kubepods):
                    self._fence_new_while_hung(waiting)

    def _fence_new_while_hung(self, waiting: LockWait) -> None:
        """Make passes without the lock, which write only what nothing else has set."""
        writing = _WhileHung(self._heartbeat)
        fencing = Fencing(self._machine, writing, goal=NewCgroupsGoal)
        while not waiting.acquired(0):
            if not self._heartbeat.is_stale():
                LOG.info("the enforcer goes on")
                return
            self._make_pass(fencing)

    def _fence_until_the_enforcer_is_back(self) -> None:
        """Make passes until an enforcer has the lock; called, and each pass made, with it held."""
        fencing = Fencing(self._machine, self._lock)
        while True:
            self._make_pass(fencing)
            if not self._lock.try_acquire():
                return

    def _make_pass(self, fencing: "Fencing") -> None:
        """Make one pass with the right to write, rest, and wait until the next pass is due."""
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
        fencing.writing.release()
        fencing.note_work(time.thread_time() - began)
        rest(pods, fencing, fencing.rest_seconds())
        wait_for_event(pods, fencing, wait_seconds)

    def _log_unwatched(self) -> None:
        if (problem := self._kubepods.watch_problem) != self._unwatched:
            self._unwatched = problem
            if problem:
                LOG.warning("new pods are fenced late", extra={"why": problem})

    def _spec_to_enforce(self) -> NodeAssignmentSpec | None:
        conflict = static_policy_conflict(self._settings.kubelet_state_dir)
        return None if conflict else self._saved.spec()


def rest(pods: PodTree | None, fencing: "Fencing", seconds: float) -> None:
    """Read no events for so many seconds, but those of new pods, which are fenced."""
    _wait(pods, fencing, seconds, [])


def wait_for_event(pods: PodTree | None, fencing: "Fencing", seconds: float) -> None:
    """Wait for an event that matters, for so many seconds at most; fence new pods at once."""
    watches = [pods.watch] if pods is not None else []
    end_seconds = time.monotonic() + seconds
    while readable := _wait(pods, fencing, end_seconds - time.monotonic(), watches):
        began_seconds = time.thread_time()
        is_news = any(watch.collect() for watch in readable)
        spent_seconds = time.thread_time() - began_seconds
        if is_news:
            fencing.note_work(spent_seconds)
            return
        fencing.note_vain_read(spent_seconds)
        rest(pods, fencing, fencing.vain_rest_seconds())


def _wait(
    pods: PodTree | None, fencing: "Fencing", seconds: float, watches: list[PodWatch]
) -> list[PodWatch]:
    """The watches with events, or none after so many seconds; new pods are fenced meanwhile."""
    waited: list[PodWatch | NewPods] = [*watches]
    if pods is not None:
        waited.append(pods.new_pods)
    end_seconds = time.monotonic() + seconds
    while (left_seconds := end_seconds - time.monotonic()) > 0:
        readable, _, _ = select.select(waited, [], [], left_seconds)
        if pods is not None and pods.new_pods in readable:
            fencing.fence_pods(pods)
        if found := [watch for watch in watches if watch in readable]:
            return found
    return []


class Fencing:
    """The passes of one period in which the enforcer is away."""

    def __init__(
        self,
        machine: Machine,
        writing: Writing,
        monotonic: Callable[[], float] = time.monotonic,
        goal: type[FenceGoal] = FenceGoal,
    ) -> None:
        self._machine, self._monotonic, self._goal = machine, monotonic, goal
        self.writing = writing
        self._schedule = Schedule(RESYNC_SECONDS, RETRY_SECONDS)
        self._reconciler: Reconciler | None = None
        self._is_fencing = False

    def make_pass(self, pods: PodTree, spec: NodeAssignmentSpec) -> float:
        """Make one pass.

        Args:
            pods: the same tree at each call.
            spec: the last accepted one.

        Returns:
            The seconds until the next pass is due if no event comes.
        """
        began = self._monotonic()
        full = self._schedule.resync_due(began)
        self._machine.rescan(pages=full)
        goal = self._goal(spec, self._machine.topology)
        reconciler = self._reconciler or self._begin(pods, goal)
        try:
            done = reconciler.converge(goal, full_resync=full)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            self._schedule.note_unreadable()
        else:
            self._log(done)
            self._schedule.note_pass(began, resynced=full, complete=done.complete)
        return self._schedule.wait_seconds(self._monotonic())

    def _begin(self, pods: PodTree, goal: FenceGoal) -> Reconciler:
        """Get ready, and fence new pods from now on: the first read of all may take long."""
        # The enforcer cannot end, nor go on, while the kernel moves memory for it.
        files = PatientFiles(pods.files, MoveGate(left_moving=True))
        made = self._reconciler = Reconciler(files, pods.snapshot, pods.naming)
        pods.files.between_reads = made.between = partial(self._fence_pods, pods, made)
        rules = Rules(goal.spec, pods.naming, goal.topology)
        made.first_writes.arm_above_pods(pods.mounts.version, rules, goal.scope)
        return made

    def fence_pods(self, pods: PodTree) -> None:
        """Between two passes: keep pods that events name off exclusive CPUs of others."""
        paths = pods.new_pods.take()
        if paths and self._reconciler is not None and self.writing.try_acquire():
            self._log_made(self._reconciler.first_writes.fence_pods(paths))
            self.writing.release()

    def _fence_pods(self, pods: PodTree, reconciler: Reconciler) -> None:
        """The same in the middle of a pass, which has the right to write."""
        if not self._is_fencing and reconciler.first_writes.is_armed:
            self._is_fencing = True
            self._log_made(reconciler.first_writes.fence_pods(pods.new_pods.take()))
            self._is_fencing = False

    def forget(self) -> None:
        """Start again from nothing; the next pass may be of another tree."""
        self._reconciler = None

    def note_work(self, spent_seconds: float) -> None:
        """A pass or a read of events took so much CPU time: the next rest is longer."""
        self._schedule.note_work(spent_seconds, self._monotonic())

    def note_vain_read(self, spent_seconds: float) -> None:
        """The same of a read in which no event mattered."""
        self._schedule.note_vain_read(spent_seconds, self._monotonic())

    def rest_seconds(self) -> float:
        """How long to rest after a pass, whatever happens."""
        return self._schedule.rest_seconds(self._monotonic())

    def vain_rest_seconds(self) -> float:
        """How long to read no events after a read in which none mattered."""
        return self._schedule.vain_rest_seconds(self._monotonic())

    def _log(self, done: Converged) -> None:
        self._log_made(done.made)
        for failure in done.failures if not self._schedule.failed_passes else ():
            LOG.warning("a cgroup write was refused", extra={"error": failure.error})

    @staticmethod
    def _log_made(writes: Iterable[Write]) -> None:
        for write in writes:
            LOG.info(FENCED, extra={"cgroup": write.path, write.setting: str(write.value)})
