"""The reconciler of agent, standby and `--release`: observe, compute, plan, apply, read back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.apply import Outcome, apply, unblocked
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.tree_cache import CgroupFiles, TreeCache
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.first_writes import FirstWrites
from numapin_enforcer.goals import Goal
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.plan.drift import Drift, DriftDetector
from numapin_enforcer.plan.new_cgroups import Scope
from numapin_enforcer.plan.writes.involved import Settled, involved
from numapin_enforcer.plan.writes.ordered import NOTHING_HELD, Held, Plan
from numapin_enforcer.plan.writes.set_again import set_again

MOST_CHECKS: Final = 5
"""How often a resync may only check what exclusive CPUs rest on, before one reads everything."""

MOST_ROUNDS: Final = 8
"""How often `converge` plans again at most while others keep changing the tree."""


class Reconciler:
    """Brings the cgroups of one pod tree to a goal, pass by pass. A pass never waits."""

    def __init__(
        self, files: CgroupFiles, snapshot: TreeCache, naming: CgroupNaming, most_checks: int = 0
    ) -> None:
        """Args: for so many resyncs in a row, a check of exclusive CPUs may replace a full read."""
        self._files, self._snapshot, self.naming = files, snapshot, naming
        self._checks_left = self._most_checks = most_checks
        self._cache = DesiredCache(naming)
        self._drifts = DriftDetector(files.has_tasks)
        self._steady: tuple[Goal, Converged] | None = None
        """The last pass, if it left nothing to do; without the writes that it made."""
        self._settled: Settled | None = None
        """What was complete and needed no write when it was planned for last."""
        self._held: Held = NOTHING_HELD
        """What exclusive containers had after the last pass."""
        self.first_writes = FirstWrites(files, naming)
        self.between: Callable[[], object] = bool
        """Called after a plan and after each write, since both may take long."""

    def converge(self, goal: Goal, *, full_resync: bool) -> Converged:
        """Plan and write until nothing is left to write, for `MOST_ROUNDS` rounds at most.

        What others change between two reads is in the later one, and is planned for again.

        Args:
            goal: what the cgroups must become.
            full_resync: read the whole tree, not only the cgroups that events named. If the last
                pass left nothing to do, a check may be made instead: see `__init__`.

        Raises:
            CgroupError: a file could not be read.
        """
        tree = self._observe(goal) if full_resync else self._snapshot.observe(full_resync=False)
        if self._steady is not None and self._steady[0] == goal and self._steady[1].tree == tree:
            return self._steady[1]
        done = self._rounds(goal, tree)
        self._held = _held(done)
        if done.tree is not None:
            self._arm(goal, (done.tree, done.desired), goal.scope, is_complete=done.complete)
        idle = done.complete and not (done.failures or done.moves or done.drifts)
        self._steady = (goal, replace(done, made=())) if idle and done.tree is not None else None
        return done

    def _observe(self, goal: Goal) -> Tree | None:
        """The tree, read again unless a check shows that it has what exclusive CPUs rest on."""
        if self._checks_left and self._steady is not None and self._steady[0] == goal:
            self._checks_left -= 1
            tree = self._snapshot.observe(full_resync=False)
            if tree == self._steady[1].tree and self._snapshot.is_current(self._exclusive_cpus):
                return tree
        self._checks_left = self._most_checks
        return self._snapshot.observe(full_resync=True)

    def set_again(self, goal: Goal, done: Converged, paths: Iterable[str]) -> Converged:
        """Write the sets of some cgroups once more after a pass, so that all threads follow them.

        Raises:
            CgroupError: a file could not be read.
        """
        made, tree = list(done.made), done.tree
        for path in paths:
            if tree is None or not done.settled:
                break
            writes = set_again(tree, done.desired, self.naming, path)
            outcome = apply(writes, self._files)
            made += outcome.made
            if not outcome.complete:
                self._drifts.forget()  # what is left of it is no change by others
            if writes:
                self._snapshot.read_back([write.path for write in writes])
        again = self.converge(goal, full_resync=False)
        all_drifts = (*done.drifts, *again.drifts)
        return replace(again, made=(*made, *again.made), drifts=all_drifts)

    def observe(self, *, full_resync: bool) -> Converged:
        """Read the tree and write nothing; what was right before counts no more.

        Raises:
            CgroupError: a file could not be read.
        """
        self._forget()
        return Converged(self._snapshot.observe(full_resync=full_resync))

    @property
    def _exclusive_cpus(self) -> CpuSet:
        return CpuSet.union(self._held.values())

    def _rounds(self, goal: Goal, tree: Tree | None) -> Converged:
        made: list[Write] = []
        drifts: list[Drift] = []
        for _ in range(MOST_ROUNDS):
            if tree is None:
                break
            desired = goal.desired(tree, self._cache)
            drifts += self._drifts.detect(tree, desired)
            part = self._involved(tree, desired)
            steps = goal.plan(part, desired, self._held)
            self.between()
            self._note(steps, (tree, desired), is_complete=_is_complete(part, desired))
            self._arm(goal, (tree, desired), replace(goal.scope, in_pass=True), is_complete=False)
            outcome = apply(self._paced(steps.quick), self._files)
            made += outcome.made
            before, tree = tree, self._read_back(tree, steps.quick)
            if tree is not None and _ended(steps, outcome, before, tree):
                moves = unblocked(steps.moves, outcome)
                result = (tuple(made), outcome.failed, moves, tuple(drifts))
                complete = _is_complete(self._involved(tree, desired), desired)
                growing = frozenset() if steps.quick else steps.left
                return Converged(tree, desired, *result, complete, growing=growing)
        if tree is None:
            self._forget()
            return Converged(made=tuple(made))
        desired = goal.desired(tree, self._cache)
        result = (tuple(made), (), (), tuple(drifts))
        return Converged(tree, desired, *result, complete=False, stable=False)

    def _note(self, steps: Plan, planned: Settled, *, is_complete: bool) -> None:
        """Remember what the plan of one round says of the tree that it was made for."""
        if is_complete and not steps.writes:
            self._settled = planned

    def _arm(self, goal: Goal, state: Settled, scope: Scope, *, is_complete: bool) -> None:
        """Let new pods be fenced by what is known now, while this pass goes on and after it."""
        rules, known = goal.rules(self._cache), (*state, self._held)
        self.first_writes.arm(rules, known, scope, is_complete=is_complete)

    def _paced(self, writes: Iterable[Write]) -> Iterator[Write]:
        """The writes, with time for new pods after each: the kernel may take milliseconds."""
        for write in writes:
            yield write
            self.between()

    def _involved(self, tree: Tree, desired: Mapping[str, Desired]) -> Tree:
        return tree if self._settled is None else involved(tree, desired, self._settled)

    def _read_back(self, tree: Tree, written: Iterable[Write]) -> Tree | None:
        paths = [write.path for write in written]
        return self._snapshot.read_back(paths) if paths else tree

    def _forget(self) -> None:
        self._drifts.forget()
        self._steady = self._settled = None
        self.first_writes.disarm()
        self._held = NOTHING_HELD


def _held(done: Converged) -> Held:
    """The CPUs of each exclusive container that has exactly its own."""
    cgroups = done.tree.cgroups if done.tree is not None else {}
    return {
        path: one.cpus
        for path, one in done.desired.items()
        if one.exclusive and cgroups[path].effective_cpus == one.cpus
    }


def _is_complete(part: Tree, desired: Mapping[str, Desired]) -> bool:
    return all(
        path == part.root or one.effective_cpus == desired[path].cpus
        for path, one in part.cgroups.items()
    )


def _ended(steps: Plan, outcome: Outcome, before: Tree, after: Tree) -> bool:
    """Whether another round is useless: nothing was left to write, or the same writes are next.

    On v2 the kernel may accept a set and give the cgroup another one: then the tree says why.
    """
    if not steps.quick or after is before:
        return True
    return bool(outcome.failed) and after.cgroups.keys() == before.cgroups.keys()
