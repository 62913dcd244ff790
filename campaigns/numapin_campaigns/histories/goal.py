"""The enforcer's goal in a history, which notes what a pass might leave to the runtime."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.writes.growth import leave_growth
from numapin_enforcer.plan.writes.ordered import Held, Plan


class Noting(Protocol):
    """Who is told that the last pass had something to write that it may leave to a runtime."""

    may_leave: bool


@dataclass(frozen=True)
class NotingGoal(AssignmentGoal):
    """Notes whether a plan would leave writes to the runtime of the cgroups `grows`."""

    grows: frozenset[str] = field(default=frozenset(), compare=False)
    noting: Noting | None = field(default=None, compare=False)

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """The enforcer's plan."""
        steps = AssignmentGoal.plan(self, tree, desired, held)
        if self.noting is not None and not self.noting.may_leave:
            left = leave_growth(steps, self.grows, tree, desired, held).left
            self.noting.may_leave = bool(left)
        return steps
