"""The cgroups of one pass: brought to its goal, with the threads in them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.conditions.reasons import Obstacle
from numapin_api.schema.plain import Disturbance
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopyWriter
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.passes.watched_pods import WatchedPods
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.telemetry.samples.foreign_tasks import ForeignTasks
from numapin_enforcer.threads.check import ThreadCheck

LOG: Final = logging.getLogger(__name__)


@dataclass(eq=False)
class Enforcing:
    """Makes the cgroups match what a pass starts from."""

    acceptance: Acceptance
    local_copy: LocalCopyWriter
    pods: WatchedPods
    threads: ThreadCheck
    foreign: ForeignTasks
    disturbances: Callable[[], tuple[Disturbance, ...]] = tuple
    """What runs on exclusive CPUs besides, by name."""
    _holding: bool = field(init=False)
    """Whether cpusets of ours may be in force, which must be released with the assignment."""
    _audit: DesiredCache | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._holding = self.acceptance.enforces

    def enforce(self, one: Pass) -> Pass:
        """Write the cgroups; returns the pass with what it did."""
        naming, goal, result, unreadable = None, None, Converged(), None
        try:
            if (pods := self.pods.open()) is not None:
                naming, reconciler = pods.naming, self.pods.reconciler(pods)
                self._hold(one)
                goal = goal_of(one, holding=self._holding)
                result = self._converged(goal, reconciler, resynced=one.full_resync)
        except CgroupError as error:
            LOG.warning("the cgroups could not be read", extra={"error": error})
            # Without a goal followers still rest; with one they do not act on what was not read.
            naming = naming if goal is None else None
            unreadable = Obstacle(error.reason, str(error))
        return replace(
            one,
            naming=naming,
            goal=goal,
            result=result,
            foreseen=self._foreseen(one, naming, result.tree),
            unreadable=unreadable,
            wide=self.threads.wide,
            inherited=self.threads.inherited,
            unseen=self.threads.note,
            foreign=self.foreign.found,
            disturbances=self.disturbances(),
        )

    def end(self, one: Pass, *, names_complete: bool, awaits_others: bool) -> None:
        """All have followed the pass: leave a tree that is gone; note the end of a release.

        Once it is known whom the runtime was told of, the last spec is needed no more: whoever
        comes next must not enforce it. A release ends with a pass that `awaits_others` no more:
        see `Followers`.
        """
        if one.goal is not None and one.naming is not None and one.result.tree is None:
            self.pods.close()
        elif one.released and names_complete:
            self._holding = awaits_others
            self._save()

    def _foreseen(
        self, one: Pass, naming: CgroupNaming | None, tree: Tree | None
    ) -> Mapping[str, Desired]:
        """What an audited spec would have each cgroup have."""
        if not one.audits or one.spec is None or naming is None or tree is None:
            return {}
        if self._audit is None or self._audit.naming != naming:
            self._audit = DesiredCache(naming)
        return AssignmentGoal(one.spec, one.topology, one.names).desired(tree, self._audit)

    def _hold(self, one: Pass) -> None:
        """A spec is enforced from now on: it is on disk soon, and must be released some day."""
        if one.enforces and not one.conflict:
            self._holding = True
            self._save()

    def _save(self) -> None:
        if self.acceptance.accepted is not None:
            self.local_copy.want(self.acceptance.accepted)

    def _converged(
        self,
        goal: AssignmentGoal | ReleaseGoal | None,
        reconciler: Reconciler,
        *,
        resynced: bool,
    ) -> Converged:
        """Reach the goal. Tasks on CPUs that are not theirs are looked for while there is a spec.

        Raises:
            CgroupError: a file could not be read.
        """
        if goal is None:
            self.threads.rest()
            return reconciler.observe(full_resync=resynced)
        done = reconciler.converge(goal, full_resync=resynced)
        if done.tree is None or not isinstance(goal, AssignmentGoal):
            self.threads.rest()
            return done
        if resynced:
            self.foreign.look(done.tree, done.desired)
        naming = reconciler.naming
        paths = self.threads.look(done.tree, done.desired, naming, resynced=resynced)
        if paths and not self.pods.gate.is_moving:
            done = reconciler.set_again(goal, done, paths)
            if done.tree is not None:
                self.threads.look_again(done.tree)
        return done


def goal_of(one: Pass, *, holding: bool) -> AssignmentGoal | ReleaseGoal | None:
    """What to bring the cgroups to; None to leave them alone.

    Args:
        one: the pass.
        holding: whether cpusets of ours may be in force.
    """
    if one.spec is None or (one.conflict and (one.enforces or not one.pins_cpus)):
        return None
    found = one.found_mems
    if one.enforces:
        return AssignmentGoal(one.spec, one.topology, one.names, found, one.by_runtime)
    return ReleaseGoal(one.topology, found, keeps_containers=one.pins_cpus) if holding else None
