"""Keeps pods off CPUs that others own while the node's enforcer is away."""

import logging
import math
import select
import time
from contextlib import closing
from typing import Final, NoReturn

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_enforcer.assignment.local_copy import LocalCopy, LocalCopyError
from numapin_enforcer.cgroups.apply import Outcome, apply
from numapin_enforcer.cgroups.kubepods import Host, PodTree
from numapin_enforcer.cgroups.snapshot import CgroupView
from numapin_enforcer.cgroups.tree import CgroupError
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.node.kubelet_checkpoint import static_policy_conflict
from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.pace import Pace
from numapin_enforcer.plan.fence import breached, fence
from numapin_enforcer.plan.writes import plan
from numapin_enforcer.settings import NodeSettings

LOG: Final = logging.getLogger(__name__)

RESYNC_SECONDS: Final = 1.0
"""How often to look at everything though nothing seems to have happened."""

RETRY_SECONDS: Final = 0.002
"""How soon to try again what the kernel did not take; doubles up to `RESYNC_SECONDS`.

A pod that is just being made by its runtime is the common cause, and gone in a moment.
"""

MOST_ROUNDS: Final = 8
"""So often is a tree planned for in one pass while it keeps changing."""


class Kept:
    """The last accepted spec as the enforcer left it on the node; read again when it changed."""

    def __init__(self, copy: LocalCopy) -> None:
        self._copy = copy
        self._seen: tuple[int, int] | None = None
        self._spec: NodeAssignmentSpec | None = None

    def spec(self) -> NodeAssignmentSpec | None:
        """What is to be in force; None where that is nothing, or the copy cannot be used."""
        try:
            found = self._copy.path.stat()
        except FileNotFoundError:
            self._seen = self._spec = None
            return None
        seen = (found.st_ino, found.st_mtime_ns)
        if seen != self._seen:
            self._seen, self._spec = seen, self._read()
        return self._spec

    def _read(self) -> NodeAssignmentSpec | None:
        try:
            kept = self._copy.read()
        except LocalCopyError as error:
            LOG.warning("the kept assignment cannot be used", extra={"why": error.problem})
            return None
        enforced = kept is not None and kept.spec.mode != "None" and kept.spec.pools is not None
        return kept.spec if kept is not None and enforced else None


class Standby:
    """Waits for the enforcer to be away, stands in for it, and makes way when it is back.

    Raises:
        NoCpusetError: no cpuset controller is mounted.
        DiscoveryError: not one online CPU can be read.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._host = Host(settings.cgroupfs, settings.cgroup_root)
        self._machine = Machine(settings.sysfs, settings.procfs)
        self._kept = Kept(LocalCopy(settings.state_dir, settings.node_name))
        self._lock = NodeLock(settings.state_dir)

    def run(self) -> NoReturn:
        """Stand by until the process is ended.

        Raises:
            InvalidIdError: the cgroup root is no cgroup's name.
            OSError: the lock cannot be opened, or inotify is not to be had.
        """
        LOG.info("standing by")
        while True:
            try:
                self._lock.acquire()
            except FileNotFoundError:  # no enforcer was here yet
                time.sleep(RESYNC_SECONDS)
                continue
            LOG.info("the enforcer is away: new pods are kept off CPUs that others own")
            with closing(self._host):
                self._stand_in()
            LOG.info("the enforcer is back")

    def _stand_in(self) -> None:
        """Make passes until an enforcer has the lock; called, and each pass made, with it held."""
        absence, pace = Absence(self._machine), Pace()
        while True:
            began = time.thread_time()
            pods = self._host.open()
            pause_seconds = RESYNC_SECONDS
            if pods is not None and (spec := self._to_enforce()) is not None:
                pause_seconds = absence.see_to(pods, spec)
            self._lock.release()
            time.sleep(pace.rest_seconds(time.thread_time() - began, time.monotonic()))
            select.select([pods.watch] if pods is not None else [], [], [], pause_seconds)
            if not self._lock.try_acquire():
                return

    def _to_enforce(self) -> NodeAssignmentSpec | None:
        return (
            None if static_policy_conflict(self._settings.kubelet_state_dir) else self._kept.spec()
        )


class Absence:
    """One time that the enforcer is away."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._looked_at = -math.inf
        self._failed_passes = 0

    def see_to(self, pods: PodTree, spec: NodeAssignmentSpec) -> float:
        """Make one pass; says how many seconds nothing need be done unless something happens."""
        self._machine.rescan()
        try:
            self._observe(pods.view)
            fenced = self._fenced(pods, spec)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            fenced, self._looked_at = False, -math.inf
        self._failed_passes = 0 if fenced else self._failed_passes + 1
        if fenced:
            return RESYNC_SECONDS
        return min(RESYNC_SECONDS, RETRY_SECONDS * 2.0 ** min(self._failed_passes - 1, 10))

    def _observe(self, view: CgroupView) -> None:
        now = time.monotonic()
        everything = now - self._looked_at >= RESYNC_SECONDS
        view.observe(everything=everything)
        self._looked_at = now if everything else self._looked_at

    def _fenced(self, pods: PodTree, spec: NodeAssignmentSpec) -> bool:
        """Take everybody off what others own; says whether nobody is on it any more.

        Raises:
            CgroupError: a file could not be read.
        """
        for _ in range(MOST_ROUNDS):
            tree = pods.view.tree
            if tree is None:
                return True
            wanted = fence(spec, tree, pods.layout, self._machine.topology)
            if not breached(tree, wanted):
                return True
            steps = plan(tree, wanted)
            outcome = apply(steps.quick, pods.files)
            self._tell(outcome)
            pods.view.read_back(write.path for write in steps.quick)
        return False

    def _tell(self, outcome: Outcome) -> None:
        for write in outcome.made:
            LOG.info("fenced", extra={"cgroup": write.path, write.setting: str(write.value)})
        for failure in outcome.failed if not self._failed_passes else ():
            LOG.warning("a write was refused", extra={"error": failure.error})
