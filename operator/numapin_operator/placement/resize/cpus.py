"""More CPUs for a container that runs: it keeps those that it has."""

from dataclasses import dataclass, replace

from numapin_api.cpuset import CpuSet
from numapin_api.quantity import plural
from numapin_operator.placement.cpumanager.pod_cpus import PodCpus
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import (
    NotEnoughCpusError,
    SmtAlignmentError,
    TopologyAffinityError,
)
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.topologymanager.hints import (
    CpuHints,
    Impossible,
    cpu_hints_of,
    hint_of_bound,
)
from numapin_operator.placement.topologymanager.merge import MergedHint


@dataclass(frozen=True, slots=True)
class Growth:
    """CPUs that a container needs besides its own.

    Attributes:
        own: the CPUs that it has; none if it gains its first ones.
        count: how many more it needs, at least 1.
        aligned: the CPUs with which the topology policy is asked: its own, or its pod's.
        mems: the NUMA nodes that its memory is bound to, or its pod's; none if it is not bound.
        near: the CPUs whose NUMA nodes come first: its own, or those of a pod that has CPUs as a
            whole.
    """

    own: CpuMask
    count: int
    aligned: CpuMask
    mems: NumaMask
    near: CpuMask


def take_more(policy: NodePolicy, pool: CpuPool, growth: Growth) -> CpuMask:
    """Take more CPUs out of the pool: of its own NUMA nodes first, then as the policy allows.

    Returns:
        The CPUs that were added.

    Raises:
        PlacementError: they are not there, or the policy forbids them; the pool is unchanged.
    """
    free = _free(policy, pool, growth)
    if growth.count > free.bit_count():
        raise NotEnoughCpusError(growth.count, free.bit_count(), _besides(growth.own))
    hint = _hint(policy, free, growth)
    mems = growth.mems if hint.numa_nodes is None else NumaMask(growth.mems & hint.numa_nodes)
    near = policy.cpu_groups.numa_nodes_of(growth.near) or mems or None
    if hint.numa_nodes is not None:
        near = _nearest(policy, free, growth, hint.numa_nodes, near)
    if near is not None and hint.numa_nodes is not None:
        inside = policy.cpu_taker.near(free, near | hint.numa_nodes)
        free = inside if inside.bit_count() >= growth.count else free
    return PodCpus(policy.cpu_taker, pool, policy.quirks).take_from(free, growth.count, near)


def _nearest(
    policy: NodePolicy,
    free: CpuMask,
    growth: Growth,
    hinted: NumaMask,
    own: NumaMask | None,
) -> NumaMask:
    """Its own NUMA nodes if they and the hint have enough, else all of the hint."""
    if own is None:
        return hinted
    inside = policy.cpu_taker.near(free, own | hinted)
    return own if inside.bit_count() >= growth.count else hinted | own


def _free(policy: NodePolicy, pool: CpuPool, growth: Growth) -> CpuMask:
    """What may be given to it: with whole cores only, the rest of its own cores comes first."""
    if not policy.cpu_taker.whole_cores_only:
        return pool.free
    groups = policy.cpu_groups
    missing = groups.with_siblings(growth.own) & ~growth.own
    whole = groups.whole_cores(pool.free)
    wanted = f"wanted {plural(growth.count, 'CPU')}{_besides(growth.own)}"
    if missing:
        raise SmtAlignmentError(f"{wanted}; it has parts of cores, and grows by whole cores only")
    if groups.uniform and growth.count % groups.threads:
        raise SmtAlignmentError(f"{wanted}, no multiple of the {groups.threads} threads of a core")
    if growth.count > whole.bit_count():
        raise SmtAlignmentError(f"{wanted}, {whole.bit_count()} free in whole cores")
    return whole


def _hint(policy: NodePolicy, free: CpuMask, growth: Growth) -> MergedHint:
    """The NUMA nodes that the topology policy allows for all CPUs together."""
    merger, total = policy.hint_merger, growth.aligned.bit_count() + growth.count
    cpus = cpu_hints_of(policy.cpu_taker, free, growth.aligned, total)
    merged = merger.merge(cpus, hint_of_bound(growth.mems))
    if merged is None and policy.spec.memory.policy == "Preferred":
        merged = merger.merge(cpus, None)
    if merged is None:
        raise TopologyAffinityError(
            f"no NUMA nodes have {plural(growth.count, 'CPU')}{_besides(growth.aligned)} as "
            f"topology policy {merger.policy} demands{_too_wide(policy, growth, cpus)}"
        )
    return merged


def _too_wide(policy: NodePolicy, growth: Growth, cpus: CpuHints | Impossible) -> str:
    """That so many CPUs can never be on as many NUMA nodes as the memory, or on the one allowed."""
    bound = growth.mems.bit_count()
    allowed = 1 if policy.hint_merger.policy == "SingleNUMANode" else bound
    if not isinstance(cpus, CpuHints) or cpus.sockets or not allowed or cpus.fewest == allowed:
        return ""
    memory = f", and its memory is bound to {bound}" if bound else ""
    return f": {plural(cpus.wanted, 'CPU')} need {plural(cpus.fewest, 'NUMA node')}{memory}"


def allows_memory(policy: NodePolicy, cpus: CpuMask, mems: NumaMask) -> bool:
    """Whether the topology policy allows memory on these NUMA nodes beside CPUs that are given."""
    if not cpus:
        return True
    count = cpus.bit_count()
    taker = replace(policy.cpu_taker, whole_cores_only=False)  # it may have parts of cores
    there = cpu_hints_of(taker, NO_CPUS, cpus, count)
    return policy.hint_merger.merge(there, hint_of_bound(mems)) is not None


def _besides(own: CpuMask) -> str:
    return f" besides {CpuSet.from_mask(own)}" if own else ""
