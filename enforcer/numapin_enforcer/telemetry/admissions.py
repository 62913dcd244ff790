"""What the kubelet would count of the pods that an assignment adds. Does no I/O."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import NO_CACHE, Topology
from numapin_daemon.telemetry.metric import Labels, Metric
from numapin_enforcer.telemetry.allocation import CPU_REASONS
from numapin_enforcer.telemetry.kubelet_names import (
    ADMISSION_ERRORS,
    ADMISSION_REQUESTS,
    ALIGNED,
    CPU_ERRORS,
    CPU_REQUESTS,
    MEMORY_ERRORS,
    MEMORY_REQUESTS,
    MISALIGNED,
)

Counts = Counter[tuple[Metric, Labels]]
"""What to add to which series."""


def admissions(
    before: NodeAssignmentSpec | None, after: NodeAssignmentSpec, topology: Topology
) -> Counts:
    """What to count for the containers and refusals of `after` that `before` lacks.

    Unlike the kubelet, an allocation counts as aligned if it is, whatever the policy demands.
    """
    counts: Counts = Counter()
    known = {one.key for one in before.containers} if before else set()
    refused = {_refusal(one) for one in before.refused} if before else set()
    placed = [one for one in after.containers if one.key not in known]
    refusals = [one for one in after.refused if _refusal(one) not in refused]
    for one in placed:
        counts.update(_of_container(one, topology))
    for other in refusals:
        counts.update(_of_refusal(other))
    pods = {one.pod_uid for one in placed} | {_refusal(one)[0] for one in refusals}
    if admitted := len(pods - {uid for uid, _ in known} - {uid for uid, _, _ in refused}):
        counts[ADMISSION_REQUESTS, ()] += admitted
    return counts


def _of_container(one: ContainerAssignment, topology: Topology) -> Iterator[tuple[Metric, Labels]]:
    if one.exclusive:
        yield CPU_REQUESTS, ()
        for boundary in _aligned(topology, one.cpus):
            for metric in ALIGNED:
                yield metric, ("container", boundary)
    if one.mems:
        yield MEMORY_REQUESTS, ()


def _aligned(topology: Topology, cpus: CpuSet) -> Iterator[str]:
    """The boundaries that a set of CPUs keeps."""
    cores = {cpu.core for cpu in topology.cpus if cpu.id in cpus}
    if CpuSet.union(topology.core_cpus[core] for core in cores) == cpus:
        yield "physical_cpu"
    for boundary, groups in (
        ("numa_node", {cpu.numa_node for cpu in topology.cpus if cpu.id in cpus}),
        ("uncore_cache", {cpu.uncore_cache for cpu in topology.cpus if cpu.id in cpus}),
    ):
        if len(groups) == 1 and NO_CACHE not in groups:
            yield boundary


def _of_refusal(refusal: Any) -> Iterator[tuple[Metric, Labels]]:
    reason, scope = refusal.get("reason"), "container" if refusal.get("container") else "pod"
    if reason in CPU_REASONS:
        yield from ((CPU_REQUESTS, ()), (CPU_ERRORS, ()))
    if reason == Reason.NOT_ENOUGH_MEMORY:
        yield from ((MEMORY_REQUESTS, ()), (MEMORY_ERRORS, ()))
    if reason in {Reason.TOPOLOGY_AFFINITY_ERROR, Reason.SMT_ALIGNMENT_ERROR}:
        smt = reason == Reason.SMT_ALIGNMENT_ERROR
        labels = ("container", "physical_cpu") if smt else (scope, "numa_node")
        for metric in MISALIGNED:
            yield metric, labels
    yield ADMISSION_ERRORS, ()


def _refusal(one: Any) -> tuple[str, str, str]:
    return str(one.get("podUID")), str(one.get("container")), str(one.get("reason"))
