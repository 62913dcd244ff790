"""What a pass started from, did and found, as values. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.conditions.reasons import Obstacle
from numapin_api.meta.modes import AUDIT, is_enforced
from numapin_api.schema.plain import Disturbance, KubeletContainer, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.write import Write
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.plan.containment import Desired, FoundMems
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.threads.findings import InheritedMask, WideThreads


@dataclass(frozen=True, slots=True)
class Converged:
    """What the reconciler made of the cgroups, for a pass, the standby or a release.

    Attributes:
        tree: the cgroups as read after the last write; None if the kubelet has no pods' cgroup.
        desired: what each cgroup of `tree` must have; empty if nothing is enforced.
        made: the writes that the kernel made.
        failures: the writes that the kernel refused.
        moves: writes left to do that move memory; each is safe although some writes failed.
        drifts: external changes that were reverted.
        complete: whether every cgroup has the CPUs that it must have.
        stable: False if others changed the tree in every round.
        growing: cgroups of exclusive containers whose new CPUs are free, for the runtime to write.
    """

    tree: Tree | None = None
    desired: Mapping[str, Desired] = field(default_factory=dict)
    made: tuple[Write, ...] = ()
    failures: tuple[Failure, ...] = ()
    moves: tuple[Write, ...] = ()
    drifts: tuple[Drift, ...] = ()
    complete: bool = True
    stable: bool = True
    growing: frozenset[str] = frozenset()

    @property
    def settled(self) -> bool:
        """Whether nothing must be tried again; `moves` may be left."""
        return self.complete and not self.failures

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do, neither for CPUs nor for NUMA nodes."""
        return self.settled and not self.moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass of the agent. Each step of the pass returns it with what this step adds.

    Attributes:
        began_seconds: when it began; `ended_seconds`: when its report was made, or 0 before.
        full_resync: whether it must read every cgroup.
        failed_before: how many passes in a row had failed before.
        topology: the hardware.
        body: the NodeAssignment as the API server has it; None if it has none.
        spec: the spec that was accepted last; None before the first.
        generation: of the newest spec; `received_seconds`: when it was received.
        conflict: why the kubelet's CPU manager must be left alone; empty if it does not pin.
        pins_cpus: whether the kubelet's CPU manager pins.
        pinned: the containers that the kubelet pins itself, under a conflict.
        names: container id to name, as far as the runtime has named them.
        found_mems: what bound cgroups had before; see `Rules`.
        by_runtime: cgroups of containers that gain CPUs by an update of their runtime.
        naming: how to read the cgroups' paths; None if there are none, or they cannot be read.
        unreadable: set if the cgroups could not be read.
        goal: what the cgroups were brought to; None if they were only read.
        result: what was made of the cgroups.
        foreseen: what mode Audit would have each cgroup have; empty in other modes.
        wide: threads that may use more CPUs than their cgroup has.
        inherited: cgroups whose processes have the CPU affinity of the container runtime.
        unseen: which threads are not looked at; empty if all are.
        foreign: exclusive containers on whose CPUs other tasks run.
        disturbances: what runs on exclusive CPUs besides, by name.
    """

    began_seconds: float
    topology: Topology
    ended_seconds: float = 0.0
    full_resync: bool = False
    failed_before: int = 0
    body: Mapping[str, Any] | None = None
    spec: NodeAssignmentSpec | None = None
    generation: int = 0
    received_seconds: float = 0.0
    conflict: str = ""
    pins_cpus: bool = False
    pinned: tuple[KubeletContainer, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    found_mems: FoundMems = field(default_factory=dict)
    by_runtime: frozenset[str] = frozenset()
    naming: CgroupNaming | None = None
    unreadable: Obstacle | None = None
    goal: AssignmentGoal | ReleaseGoal | None = None
    result: Converged = Converged()
    foreseen: Mapping[str, Desired] = field(default_factory=dict)
    wide: tuple[WideThreads, ...] = ()
    inherited: tuple[InheritedMask, ...] = ()
    unseen: str = ""
    foreign: tuple[str, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()

    @property
    def enforces(self) -> bool:
        """Whether the accepted spec must be enforced; if not, all cgroups are released."""
        return self.spec is not None and is_enforced(self.spec.mode)

    @property
    def enforced(self) -> NodeAssignmentSpec | None:
        """The spec that was enforced; None if every cgroup was released, or only read."""
        return self.goal.spec if isinstance(self.goal, AssignmentGoal) else None

    @property
    def audits(self) -> bool:
        """Whether it is only reported what the accepted spec would change."""
        return self.spec is not None and self.spec.mode == AUDIT and not self.conflict

    @property
    def looked_for(self) -> NodeAssignmentSpec | None:
        """The spec whose containers are looked for: it is enforced, or audited."""
        return self.spec if self.audits else self.enforced

    @property
    def wanted(self) -> Mapping[str, Desired]:
        """What that spec says for each cgroup of the tree."""
        return self.foreseen if self.audits else self.result.desired

    @property
    def rests(self) -> bool:
        """Whether nothing more than the cgroups was to be changed."""
        return self.goal is None or bool(self.conflict)

    @property
    def looks(self) -> bool:
        """Whether containers are looked for: to be changed, or for what an audit reports."""
        return self.audits or not self.rests

    @property
    def left_alone(self) -> bool:
        """Whether the whole node was to be left as it is."""
        is_pinned = bool(self.conflict) and self.enforces
        return self.goal is None and (self.spec is None or is_pinned)

    @property
    def released(self) -> bool:
        """Whether every cgroup has again what it had, and nothing is left to release."""
        is_release = isinstance(self.goal, ReleaseGoal)
        return is_release and self.result.tree is not None and self.result.finished

    @property
    def resynced(self) -> bool:
        """Whether every cgroup was read."""
        return self.full_resync and self.unreadable is None

    @property
    def failed_passes(self) -> int:
        """How many passes failed in a row, this one included."""
        is_settled = self.unreadable is None and self.result.settled
        return 0 if is_settled else self.failed_before + 1

    @property
    def in_vain(self) -> bool:
        """Whether no cgroup can be read or written, so that a new one would not be fenced."""
        errors = (one.error for one in self.result.failures)
        is_read_only = any(isinstance(error, CgroupReadOnlyError) for error in errors)
        return self.unreadable is not None or (is_read_only and not self.result.made)
