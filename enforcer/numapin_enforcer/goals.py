"""What a pass brings the cgroups to: a spec, or what was found. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired, FoundMems, in_containers
from numapin_enforcer.plan.desired import Rules, release
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.plan.new_cgroups import EVERYTHING, Scope
from numapin_enforcer.plan.writes.growth import leave_growth
from numapin_enforcer.plan.writes.ordered import Held, Plan, plan


class Goal(Protocol):
    """What the kubelet's cgroups must become; goals that are equal need no new pass."""

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """The cpusets that each cgroup of `tree` must have."""
        ...

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """The writes that are left to do; none once the goal is reached. `held`: see `plan`."""
        ...

    def rules(self, cache: DesiredCache) -> Rules | None:
        """What new cgroups must have, after `desired`; None if they may have all CPUs."""
        ...

    @property
    def scope(self) -> Scope:
        """Which new cgroups may be fenced once the goal is reached."""
        ...


@dataclass(frozen=True, slots=True)
class AssignmentGoal:
    """A spec is in force.

    Attributes:
        spec: what must be in force.
        topology: the machine's present state.
        names: container id to name, as the runtime lists them.
        found_mems: see `Rules`.
        by_runtime: cgroups of containers that gain CPUs by their runtime; see `leave_growth`.
    """

    spec: NodeAssignmentSpec
    topology: Topology
    names: Mapping[str, str]
    found_mems: FoundMems = field(default_factory=dict)
    by_runtime: frozenset[str] = frozenset()

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What the spec says for each cgroup."""
        return cache.desired(self.spec, tree, self.names, self.topology, self.found_mems)

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """Every difference is written, by us or by the runtime."""
        return leave_growth(plan(tree, desired, held), self.by_runtime, tree, desired, held)

    def rules(self, cache: DesiredCache) -> Rules | None:
        """Those of the spec."""
        return cache.rules

    @property
    def scope(self) -> Scope:
        """All of them."""
        return EVERYTHING


@dataclass(frozen=True, slots=True)
class ReleaseGoal:
    """Every cgroup has the CPUs of kubepods, and the NUMA nodes that it had before.

    With `keeps_containers` only pods and QoS classes get them: the kubelet has set the containers,
    and can set only what their parents have.
    """

    topology: Topology
    found_mems: FoundMems = field(default_factory=dict)
    keeps_containers: bool = False

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What was found, as far as it is known."""
        kept = in_containers(tree, cache.naming) if self.keeps_containers else ()
        return release(tree, self.topology, self.found_mems, kept)

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """Every difference is written."""
        return plan(tree, desired, held)

    def rules(self, _cache: DesiredCache) -> None:
        """New cgroups may have all CPUs."""

    @property
    def scope(self) -> Scope:
        """None of them is fenced."""
        return EVERYTHING
