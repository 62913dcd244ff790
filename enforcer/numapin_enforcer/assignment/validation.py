"""Whether a spec can be enforced on this machine, and every reason why not. Does no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import Topology
from numapin_enforcer.assignment.spec import AssignedContainer, AssignedPools, AssignedSpec


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a spec; `field` is its path in the object."""

    reason: Reason
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def find_problems(
    spec: AssignedSpec, topology: Topology, name: str, node_name: str
) -> tuple[Problem, ...]:
    """Every reason why `spec` cannot be enforced; empty if it can.

    A spec is accepted or refused as a whole: if it is refused, the last accepted one stays in
    force.

    Args:
        spec: the NodeAssignment's spec.
        topology: this machine.
        name: the NodeAssignment's name.
        node_name: this node.
    """
    return tuple(_problems(spec, topology, name, node_name))


def _problems(
    spec: AssignedSpec, topology: Topology, name: str, node_name: str
) -> Iterator[Problem]:
    if name != node_name:
        message = f"it is for the node {name}, and this node is {node_name}"
        yield _invalid("metadata.name", message)
    if spec.isolation != "Cpuset":
        message = f"{spec.isolation} is not supported yet; use Cpuset"
        yield Problem(Reason.UNSUPPORTED_FIELD, "spec.isolation", message)
    if spec.mode == "None":
        return
    if spec.pools is not None:
        yield from _pool_problems(spec.pools, topology)
    elif spec.containers:
        message = "it is unset, but containers without exclusive CPUs need a shared pool"
        yield _invalid("spec.pools", message)
    yield from _duplicates(spec.containers)
    for index, one in enumerate(spec.containers):
        yield from _container_problems(f"spec.containers[{index}]", one, topology)
    yield from _overlaps(spec)


def _invalid(field: str, message: str) -> Problem:
    return Problem(Reason.INVALID_ASSIGNMENT, field, message)


def _pool_problems(pools: AssignedPools, topology: Topology) -> Iterator[Problem]:
    yield from _cpu_problems("spec.pools.shared", pools.shared, topology)
    yield from _cpu_problems("spec.pools.reserved", pools.reserved, topology)


def _cpu_problems(field: str, cpus: CpuSet, topology: Topology) -> Iterator[Problem]:
    offline = cpus & topology.offline
    missing = cpus - topology.online - topology.offline
    has = f"online are {topology.online}"
    if missing:
        yield _invalid(field, f"this machine has no CPU {missing}; {has}")
    if offline:
        yield _invalid(field, f"CPU {offline} is offline; {has}")


def _mem_problems(field: str, mems: MemSet, topology: Topology) -> Iterator[Problem]:
    known = MemSet(node.id for node in topology.numa_nodes)
    has = f"memory is on {topology.mems}"
    if mems - known:
        yield _invalid(field, f"this machine has no NUMA node {mems - known}; {has}")
    if mems & known - topology.mems:
        yield _invalid(field, f"NUMA node {mems & known - topology.mems} has no memory; {has}")


def _container_problems(
    field: str, one: AssignedContainer, topology: Topology
) -> Iterator[Problem]:
    if one.exclusive and not one.cpus:
        yield _invalid(f"{field}.cpus", f"{_name(one)} is exclusive, but has no CPUs")
    yield from _cpu_problems(f"{field}.cpus", one.cpus, topology)
    yield from _mem_problems(f"{field}.mems", one.mems, topology)


def _duplicates(containers: Sequence[AssignedContainer]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for index, one in enumerate(containers):
        first = seen.setdefault((one.pod_uid, one.container), index)
        if first != index:
            message = f"{_name(one)} is already listed as spec.containers[{first}]"
            yield _invalid(f"spec.containers[{index}]", message)


def _overlaps(spec: AssignedSpec) -> Iterator[Problem]:
    """Exclusive CPUs that a pool has as well, or a container of another pod.

    Containers of one pod may have the same CPUs, as in the kubelet: an init container ends before
    the containers start that use its CPUs next.
    """
    exclusive: list[AssignedContainer] = []
    seen = CpuSet()
    for index, one in enumerate(spec.containers):
        field = f"spec.containers[{index}].cpus"
        if one.exclusive:
            yield from _pool_overlaps(field, one, spec.pools)
            if one.cpus & seen:
                yield from _taken(field, one, exclusive, "is exclusive to {} as well")
            exclusive.append(one)
            seen |= one.cpus
    for index, one in enumerate(spec.containers):
        if not one.exclusive and one.cpus & seen:
            yield from _taken(
                f"spec.containers[{index}].cpus", one, exclusive, "is exclusive to {}"
            )


def _pool_overlaps(
    field: str, one: AssignedContainer, pools: AssignedPools | None
) -> Iterator[Problem]:
    named = (("shared", pools.shared), ("reserved", pools.reserved)) if pools else ()
    for what, pool in named:
        if one.cpus & pool:
            message = f"CPU {one.cpus & pool} of {_name(one)} is in the {what} pool as well"
            yield _invalid(field, message)


def _taken(
    field: str, one: AssignedContainer, others: Iterable[AssignedContainer], how: str
) -> Iterator[Problem]:
    for other in others:
        if one.pod_uid != other.pod_uid and one.cpus & other.cpus:
            message = f"CPU {one.cpus & other.cpus} of {_name(one)} {how.format(_name(other))}"
            yield _invalid(field, message)


def _name(one: AssignedContainer) -> str:
    return f"{one.namespace}/{one.pod}/{one.container}"
