"""What containers have of numapin, as the kernel has it. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import MemoryBlock
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.summary import Summary

Name = tuple[str, str, str]
"""Namespace, pod and container: the kubelet's answers have no UIDs."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a container has: its exclusive CPUs, and the memory that is bound for it."""

    cpus: CpuSet = CpuSet()
    memory: tuple[MemoryBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class InForce:
    """What one node has of numapin; nothing where numapin enforces nothing.

    Attributes:
        allocatable: the CPUs that containers can get: all but the reserved ones.
        given: what containers have, by name. A pod that was created again while the one of before
            still runs has what both have.
    """

    allocatable: CpuSet = CpuSet()
    given: Mapping[Name, Given] = field(default_factory=dict)


def in_force(one: Pass, has: Summary) -> InForce:
    """What a pass has read back.

    CPUs count once the kernel gives them to their container and to no other one, and memory once
    the container is bound to its NUMA nodes.
    """
    spec = one.enforced
    if spec is None or spec.pools is None:
        return InForce()
    rows = {row.key: row for row in spec.containers}
    given: dict[Name, Given] = {}
    for found in has.containers:
        if (row := rows.get(found.key)) is None:
            continue
        name = row.namespace, row.pod, row.container
        before = given.get(name, Given())
        cpus = found.cpus if found.exclusive else CpuSet()
        memory = row.memory if found.mems == row.mems else ()
        given[name] = Given(before.cpus | cpus, before.memory + memory)
    return InForce(one.topology.online - spec.pools.reserved, given)
