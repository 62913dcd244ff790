"""Plays a history with the real reconciler and fence on the kernel model, judging each write."""

from collections import Counter
from collections.abc import Callable, Iterable

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.actions import (
    SANDBOX,
    Action,
    Assign,
    End,
    Enter,
    Fault,
    FenceNew,
    History,
    Hold,
    Kill,
    Make,
    Name,
    Outside,
    Overwrite,
    Pass,
    Paths,
    Refuse,
    Restart,
    Restrict,
    StandbyPass,
    container_of,
)
from numapin_campaigns.histories.goal import NotingGoal
from numapin_campaigns.histories.kernel.restricted import Kernel
from numapin_campaigns.histories.kernel.watched import ModelWatch
from numapin_campaigns.histories.laws import Laws
from numapin_campaigns.histories.standby import Standby
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.errors import CgroupError, error_of
from numapin_enforcer.cgroups.tree import Version, contains
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.reconciler import MOST_CHECKS, Reconciler
from numapin_enforcer.status.in_force.summary import summarize

FaultsOf = Callable[[str, int], Iterable[Fault]]
"""The faults at the write number `nth` (from 0) of a pass to a cgroup."""


class _KilledError(Exception):
    """The enforcer has ended in the middle of a pass."""


class Node:
    """One node while a history is played on it."""

    def __init__(self, history: History) -> None:
        self.history, self.paths = history, Paths(history.driver)
        online, mems = CpuSet(range(history.cpus)), MemSet(range(history.numa_nodes))
        cpus = tuple(Cpu(cpu, cpu, 0, NO_CACHE, cpu % history.numa_nodes) for cpu in online)
        self.topology = Topology(cpus, tuple(NumaNode(node, 1 << 30) for node in mems))
        root = self.paths.path("")
        self.kernel = Kernel(Version(history.version), online, mems, root)
        self.kernel.before_write, self.kernel.after_write = self._before, self._after
        self.cgroups: dict[str, str] = {}
        """The short names of the cgroups that were made and still exist, with their paths."""
        self.names: dict[str, str] = {}
        self.assign: Assign | None = None
        self._saved: Assign | None = None
        """What the standby follows: saved after the first pass that the enforcer made for it."""
        self.laws = Laws(self.kernel, self.topology)
        self._standby = Standby(self.kernel, self.paths.naming, self.topology)
        self._is_ours = False
        self._faults_of: FaultsOf = _no_faults
        self._counts: Counter[str] = Counter()
        self.may_leave = False
        """Whether the last pass had something to write that it may leave to a runtime."""
        self._is_new = True
        """Its first pass follows the saved spec and knows no names: nothing has answered yet."""
        self._restart()
        for one in ("burstable", "besteffort"):
            self.play(Make(one))

    def play(self, action: Action, faults_of: FaultsOf | None = None) -> None:
        """Do one action; one that is impossible now is left out.

        Args:
            action: what happens.
            faults_of: asked instead of the faults in `action`.

        Raises:
            BrokenLawError: a write of ours, or what it led to, breaks a law.
        """
        if isinstance(action, Assign):
            self.assign = action
            self.laws.accept(action.spec())
        elif isinstance(action, Restart):
            self._restart()
        elif isinstance(action, Hold):
            self.laws.hold(self.cgroups)
        elif not isinstance(action, Pass | FenceNew | StandbyPass):
            self._outside(action)
        elif self.assign is not None:
            self._faults_of = faults_of or _planned(action.faults)
            self.may_leave = False
            self._is_ours = True
            try:
                self._ours(action, self.assign)
            except _KilledError:
                self._restart()
            finally:
                self._is_ours, self._faults_of = False, _no_faults
                self._counts.clear()

    def end(self) -> None:
        """Nothing is disturbed any more: two passes reach the spec, and a restart changes nothing.

        Raises:
            BrokenLawError: they do not.
        """
        self.play(Restrict(""))
        for short in self.cgroups:
            self.play(Name(short))
        self.play(Pass())
        self.play(Pass())
        if self.assign is not None:
            self.laws.check_end(self.cgroups)
            self.laws.expect_no_write = True
            self.play(Restart())
            self.play(Pass())

    def _ours(self, action: Pass | FenceNew | StandbyPass, assign: Assign) -> None:
        if isinstance(action, StandbyPass):
            if self._saved is not None:
                self.laws.accept(self._saved.spec())
                self._stand_by(action, self._saved)
                self.laws.accept(assign.spec())
        elif isinstance(action, FenceNew):
            self.laws.begin(self.cgroups, self._named(), keep_unseen=True)
            kernel = self.kernel
            changes = Changes(
                tuple(sorted(kernel.appeared)),
                tuple(kernel.vanished),
                tuple(kernel.written),
                kernel.overflowed,
            )
            self.reconciler.first_writes.fence_new(changes, self.names)
        else:
            self.laws.begin(self.cgroups, self._named(), partial=not action.full_resync)
            if self._is_new and self._saved is not None and self._saved != assign:
                self._converge(self._saved, {}, full_resync=True)
            self._is_new = False
            full, grown = action.full_resync, self._named() if action.by_runtime else ()
            self._converge(assign, dict(self.names), full_resync=full, by_runtime=grown)
            self._saved = assign

    def _stand_by(self, action: StandbyPass, assign: Assign) -> None:
        self.laws.begin(self.cgroups, self._named(), standby=True)
        self._standby.fence(assign, hung=action.hung)
        if not action.hung:
            self._restart()

    def _fence_hung(self) -> None:
        """The standby fences in the middle of a pass; its writes are judged as that pass's."""
        if self._saved is not None:
            faults_of, self._faults_of = self._faults_of, _no_faults
            self._standby.fence(self._saved, hung=True)
            self._faults_of = faults_of

    def _converge(
        self,
        assign: Assign,
        names: dict[str, str],
        *,
        full_resync: bool,
        by_runtime: Iterable[str] = (),
    ) -> None:
        given = frozenset(by_runtime)
        grows, noting = frozenset(self._named()), None if given else self
        goal = NotingGoal(
            assign.spec(), self.topology, names, by_runtime=given, grows=grows, noting=noting
        )
        done = self.reconciler.converge(goal, full_resync=full_resync)
        for path in sorted(done.growing):
            self._grow(Write(path, done.desired[path].cpus, Step.GRANT))
        if done.growing:
            done = self.reconciler.converge(goal, full_resync=False)
        apply(done.moves, self.kernel)
        self._tell(assign, done)

    def _grow(self, write: Write) -> None:
        """The runtime writes what it was sent: judged as ours, seen as that of another."""
        self.laws.before(write)
        self._is_ours = False
        try:
            self.kernel.write(write)
        except CgroupError:
            pass
        else:
            self.laws.after(write)
        finally:
            self._is_ours = True

    def _tell(self, assign: Assign, done: Converged) -> None:
        """Report what is exclusive, as the status does."""
        if done.tree is None:
            return
        status = summarize(assign.spec(), done.tree, done.desired, self.paths.naming)
        told = {one.key: one.cpus for one in status.containers if one.exclusive}
        owners = {path for path, one in done.desired.items() if one.exclusive}
        self.laws.tell(
            {
                path: told[container_of(short)]
                for short, path in self.cgroups.items()
                if container_of(short) in told and short.count("/") == 1 and path in owners
            }
        )

    def _named(self) -> list[str]:
        return [
            path
            for short, path in self.cgroups.items()
            if short.count("/") == 1 and self.paths.container_id(short) in self.names
        ]

    def _restart(self) -> None:
        cache = TreeCache(self.kernel, ModelWatch(self.kernel))
        self.reconciler = Reconciler(self.kernel, cache, self.paths.naming, MOST_CHECKS)
        self._is_new = True

    def _outside(self, action: Outside) -> None:
        was_ours, self._is_ours = self._is_ours, False
        try:
            self._do(action)
        except CgroupError:
            pass
        finally:
            self._is_ours = was_ours

    def _do(self, action: Outside) -> None:
        if isinstance(action, Restrict):
            self.kernel.restrict(CpuSet.parse(action.cpus))
            self.laws.restrict()
            return
        path = self.paths.path(action.cgroup)
        if isinstance(action, Make):
            self.kernel.make(path, bare=action.bare)
            self.cgroups[action.cgroup] = path
            self.laws.disturb(path)
        elif isinstance(action, Enter):
            self.kernel.enter(path)
        elif isinstance(action, End):
            self.kernel.vanish(path)
            self.cgroups = {
                short: one for short, one in self.cgroups.items() if not contains(path, one)
            }
        elif isinstance(action, Name):
            if path in self.kernel.groups and action.cgroup.count("/") == 1:
                name = container_of(action.cgroup)[1]
                listed = "" if name == SANDBOX else name
                self.names = {**self.names, self.paths.container_id(action.cgroup): listed}
        else:
            self._overwrite(path, action)

    def _overwrite(self, path: str, action: Overwrite) -> None:
        for value in (CpuSet.parse(action.cpus), MemSet.parse(action.mems)):
            if value:
                self.kernel.write(Write(path, value, Step.PREPARE))
                self.laws.disturb(path)

    def _before(self, write: Write) -> None:
        if not self._is_ours:
            return
        short = self.paths.short(write.path)
        nth, refusal = self._counts[short], 0
        self._counts[short] += 1
        for fault in self._faults_of(short, nth):
            if isinstance(fault, Kill):
                raise _KilledError
            if isinstance(fault, Refuse):
                refusal = fault.errno
            elif isinstance(fault.action, StandbyPass):
                self._fence_hung()
            else:
                self._outside(fault.action)
        self.laws.before(write)
        if refusal:
            raise error_of(write.path, str(write.value), OSError(refusal, "injected"))

    def _after(self, write: Write) -> None:
        if self._is_ours:
            self.laws.after(write)


def _planned(faults: tuple[Fault, ...]) -> FaultsOf:
    return lambda short, nth: [one for one in faults if (one.cgroup, one.nth) == (short, nth)]


def _no_faults(_: str, __: int) -> Iterable[Fault]:
    return ()
