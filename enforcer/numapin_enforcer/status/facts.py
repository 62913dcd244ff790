"""What is known at the end of a pass besides the pass, as values. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import (
    CgroupStatus,
    ClaimedCpus,
    NodeAssignmentSpec,
    RuntimeStatus,
    UnboundMemory,
)
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import OutsideCgroup, Tree
from numapin_enforcer.one_pass import Pass
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.in_force.thread_cpus import Intruder, confined
from numapin_enforcer.status.state import States, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the status is made of, besides the pass and what each part has to say.

    Attributes:
        topology: the hardware as the status has it.
        boot_id: of this boot of the machine; None if unknown.
        free_hugepages: by NUMA node and size.
        cgroup: the cgroup version and driver of this node; None until the tree is found.
        restart_spec: the spec that a restart would load now; None once the newest one is on disk.
        runtime: which container runtime runs here; None until it has answered.
        running: ids of the containers that run, as the runtime listed them a minute ago at most,
            with namespace, pod and name.
        outside: cgroups of containers outside of the kubelet's tree.
        strays: pod's UID and name of the kubelet's containers that are not in the kubelet's tree.
        starting: cgroups of exclusive containers without a process: they start or have ended.
        deserted: those of containers that run by the runtime's word, and have no process for long.
        claims: the CPUs that a DRA driver has given.
        unbound_memory: the memory of Guaranteed pods that is not bound to NUMA nodes.
        drift_count: how many external changes were reverted; `drift_causes`: by cause.
        problems: what keeps the enforcer from being ready, by name; empty texts do not count.
    """

    topology: Mapping[str, Any] | None = None
    boot_id: str | None = None
    free_hugepages: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    cgroup: CgroupStatus | None = None
    restart_spec: NodeAssignmentSpec | None = None
    runtime: RuntimeStatus | None = None
    running: Mapping[str, str] = field(default_factory=dict)
    outside: tuple[OutsideCgroup, ...] = ()
    strays: frozenset[tuple[str, str]] = frozenset()
    starting: frozenset[str] = frozenset()
    deserted: frozenset[str] = frozenset()
    claims: tuple[ClaimedCpus, ...] = ()
    unbound_memory: tuple[UnboundMemory, ...] = ()
    drift_count: int = 0
    drift_causes: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


def evidence(one: Pass, facts: Facts, states: States, tree: Tree, naming: CgroupNaming) -> Evidence:
    """What decides besides the cpusets of `tree` whether a container is reported exclusive."""
    stale_cpus: dict[str, CpuSet] = {}
    for state in in_order(states):
        stale_cpus |= state.stale_cpus
    names = facts.running
    return Evidence(
        facts.restart_spec,
        stale_cpus,
        facts.starting,
        facts.deserted,
        facts.outside,
        facts.strays,
        tuple(Intruder.of(wide, naming, names) for wide in one.wide),
        tuple(confined(one.inherited, tree, naming, names, one.topology)),
    )
