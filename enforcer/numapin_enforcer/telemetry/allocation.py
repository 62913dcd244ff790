"""How the CPUs of a node are given out, by its assignment. Does no I/O."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from numapin_api.conditions.reasons import REFUSAL_REASONS, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_daemon.telemetry.metric import OTHER, Labels, Values
from numapin_enforcer.telemetry.kubelet_names import (
    EXCLUSIVE_CPUS,
    EXCLUSIVE_PER_NUMA,
    SHARED_MILLICORES,
)
from numapin_enforcer.telemetry.table import FREE_CPUS, LARGEST_BLOCK, REFUSED

_KNOWN: Final = frozenset(map(str, REFUSAL_REASONS))


def allocation(spec: NodeAssignmentSpec, topology: Topology) -> Values:
    """The gauges of one assignment in force; none while it has no pools."""
    if spec.pools is None or not is_enforced(spec.mode):
        return {}
    exclusive, reserved = spec.exclusive_cpus & topology.online, spec.pools.reserved
    free = topology.online - reserved - exclusive
    shared = spec.pools.shared - reserved
    numa_cpus = topology.numa_cpus.items()
    return {
        SHARED_MILLICORES: {(): 1000 * len(shared & topology.online)},
        **{one: {(): len(exclusive)} for one in EXCLUSIVE_CPUS},
        EXCLUSIVE_PER_NUMA: {(str(node),): len(cpus & exclusive) for node, cpus in numa_cpus},
        FREE_CPUS: {(str(node),): len(cpus & free) for node, cpus in numa_cpus},
        LARGEST_BLOCK: {
            (str(node),): largest_block(topology, cpus & free) for node, cpus in numa_cpus
        },
        REFUSED: refused(spec),
    }


def largest_block(topology: Topology, free: CpuSet) -> int:
    """How many of these CPUs are whole cores of one uncore cache, at most.

    A CPU whose cache is unknown counts to its socket.
    """
    whole = CpuSet.union(cpus for cpus in topology.core_cpus.values() if cpus <= free)
    caches = Counter((cpu.socket, cpu.uncore_cache) for cpu in topology.cpus if cpu.id in whole)
    return max(caches.values(), default=0)


def refused(spec: NodeAssignmentSpec) -> Mapping[Labels, float]:
    """How many containers and pods are refused for each reason."""
    counts: Counter[Labels] = Counter((reason_of(one),) for one in spec.refused)
    if spec.refused_omitted:
        counts[(OTHER,)] += spec.refused_omitted
    return dict(counts)


def reason_of(refusal: Any) -> str:
    """The reason of a refusal, if it is one that this version knows."""
    reason = str(refusal.get("reason", ""))
    return reason if reason in _KNOWN else OTHER


CPU_REASONS: Final = frozenset(
    {
        Reason.EMPTY_POD_SHARED_POOL_ERROR,
        Reason.NOT_ENOUGH_CPUS,
        Reason.SHARED_POOL_EMPTY,
        Reason.SMT_ALIGNMENT_ERROR,
    }
)
"""Refusals that the kubelet's CPU manager counts as errors."""
