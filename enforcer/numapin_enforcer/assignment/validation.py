"""Pure: whether a spec may be put in force on this machine, and every reason why not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numapin_api.conditions import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Topology


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a spec; `field` is named as in the object."""

    reason: Reason
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def accept(
    spec: NodeAssignmentSpec, topology: Topology, name: str, node_name: str
) -> tuple[Problem, ...]:
    """Everything that keeps `spec` from being put in force; nothing when it may be.

    A spec is taken whole or refused whole: while there is a problem, the last one that was
    accepted stays in force.

    Args:
        spec: what the NodeAssignment says.
        topology: this machine, whose CPUs and memory it may name.
        name: the NodeAssignment's name.
        node_name: the node that this enforcer acts on.
    """
    return tuple(_problems(spec, topology, name, node_name))


def _problems(
    spec: NodeAssignmentSpec, topology: Topology, name: str, node_name: str
) -> Iterator[Problem]:
    if name != node_name:
        told = f"it is for the node {name}, and this node is {node_name}"
        yield _invalid("metadata.name", told)
    if spec.mode == "Dynamic":
        told = "Dynamic is not built yet; use Static"
        yield Problem(Reason.UNSUPPORTED_FIELD, "spec.mode", told)
    if spec.isolation != "Cpuset":
        told = f"{spec.isolation} is not built yet; use Cpuset"
        yield Problem(Reason.UNSUPPORTED_FIELD, "spec.isolation", told)
    if spec.mode == "None":
        return
    if spec.pools is not None:
        yield from _pool_problems(spec.pools, topology)
    elif spec.containers:
        told = "it is unset, but everybody without own CPUs must have some to run on"
        yield _invalid("spec.pools", told)
    yield from _duplicates(spec.containers)
    for index, one in enumerate(spec.containers):
        yield from _container_problems(f"spec.containers[{index}]", one, topology)
    yield from _overlaps(spec)


def _invalid(field: str, message: str) -> Problem:
    return Problem(Reason.INVALID_ASSIGNMENT, field, message)


def _pool_problems(pools: Pools, topology: Topology) -> Iterator[Problem]:
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
    field: str, one: ContainerAssignment, topology: Topology
) -> Iterator[Problem]:
    if one.exclusive and not one.cpus:
        yield _invalid(f"{field}.cpus", f"{_name(one)} is exclusive, but has no CPUs")
    yield from _cpu_problems(f"{field}.cpus", one.cpus, topology)
    yield from _mem_problems(f"{field}.mems", one.mems, topology)


def _duplicates(containers: tuple[ContainerAssignment, ...]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for index, one in enumerate(containers):
        first = seen.setdefault((one.pod_uid, one.container), index)
        if first != index:
            told = f"{_name(one)} is already listed as spec.containers[{first}]"
            yield _invalid(f"spec.containers[{index}]", told)


def _overlaps(spec: NodeAssignmentSpec) -> Iterator[Problem]:
    """Exclusive CPUs that anybody else has: a pool, or a container of another pod.

    Containers of one pod may be given the same CPUs, as in the kubelet: an ordinary init container
    has ended before those start that use its CPUs after it.
    """
    owners: list[ContainerAssignment] = []
    seen = CpuSet()
    for index, one in enumerate(spec.containers):
        field = f"spec.containers[{index}].cpus"
        if one.exclusive:
            yield from _pool_overlaps(field, one, spec.pools)
            if one.cpus & seen:
                yield from _taken(field, one, owners, "is owned by {} as well")
            owners.append(one)
            seen |= one.cpus
    for index, one in enumerate(spec.containers):
        if not one.exclusive and one.cpus & seen:
            yield from _taken(f"spec.containers[{index}].cpus", one, owners, "is owned by {}")


def _pool_overlaps(field: str, one: ContainerAssignment, pools: Pools | None) -> Iterator[Problem]:
    named = (("shared", pools.shared), ("reserved", pools.reserved)) if pools else ()
    for what, pool in named:
        if one.cpus & pool:
            told = f"CPU {one.cpus & pool} of {_name(one)} is in the {what} pool as well"
            yield _invalid(field, told)


def _taken(
    field: str, one: ContainerAssignment, owners: Iterable[ContainerAssignment], how: str
) -> Iterator[Problem]:
    for owner in owners:
        if one.pod_uid != owner.pod_uid and one.cpus & owner.cpus:
            told = f"CPU {one.cpus & owner.cpus} of {_name(one)} {how.format(_name(owner))}"
            yield _invalid(field, told)


def _name(one: ContainerAssignment) -> str:
    return f"{one.namespace}/{one.pod}/{one.container}"
