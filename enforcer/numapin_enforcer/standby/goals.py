"""What the standby brings cgroups to. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass

from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import Rules
from numapin_enforcer.plan.desired_cache import DesiredCache
from numapin_enforcer.plan.fence import breached, fence, fence_new
from numapin_enforcer.plan.new_cgroups import Scope
from numapin_enforcer.plan.writes.ordered import Held, Plan, plan


@dataclass(frozen=True, slots=True)
class FenceGoal:
    """No cgroup has exclusive CPUs of another pod, by the last accepted spec."""

    spec: NodeAssignmentSpec
    topology: Topology

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What each cgroup has, without exclusive CPUs of other pods."""
        return fence(self.spec, tree, cache.naming, self.topology)

    def plan(self, tree: Tree, desired: Mapping[str, Desired], held: Held) -> Plan:
        """Nothing is written unless a cgroup has CPUs that it must not use."""
        return plan(tree, desired, held) if breached(tree, desired) else Plan(())

    def rules(self, cache: DesiredCache) -> Rules:
        """Those of the spec: a new pod has none of its containers yet."""
        return Rules(self.spec, cache.naming, self.topology)

    @property
    def scope(self) -> Scope:
        """New pods: nobody knows which container another cgroup is."""
        return Scope(pods_only=True)


@dataclass(frozen=True, slots=True)
class NewCgroupsGoal(FenceGoal):
    """No new cgroup has exclusive CPUs of another pod; all that was ever set stays."""

    def desired(self, tree: Tree, cache: DesiredCache) -> Mapping[str, Desired]:
        """What each cgroup has; a new one without exclusive CPUs of other pods."""
        return fence_new(self.spec, tree, cache.naming, self.topology)

    @property
    def scope(self) -> Scope:
        """New pods that nothing has set: the enforcer may go on at any moment."""
        return Scope(pods_only=True, as_created=True)
