"""Whether a spec can be enforced on this machine, and why not. Does no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Topology
from numapin_enforcer.assignment.field_names import path_of_line

MOST_PROBLEMS: Final = 20
"""How many problems of a spec are named."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a spec; `field` is its path in the object."""

    reason: Reason
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def of_line(self) -> "Problem":
        """The same problem of an object with lines."""
        return replace(self, field=path_of_line(self.field))


def find_problems(
    spec: NodeAssignmentSpec, topology: Topology, name: str, node_name: str
) -> tuple[Problem, ...]:
    """The first reasons why `spec` cannot be enforced; empty if it can.

    A defective writer can make a problem of each entry, so only `MOST_PROBLEMS` are looked for; one
    more says that there are others. A spec is accepted or refused as a whole: if it is refused, the
    last accepted one stays in force.

    Args:
        spec: the NodeAssignment's spec.
        topology: this machine.
        name: the NodeAssignment's name.
        node_name: this node.
    """
    found = _problems(spec, topology, name, node_name)
    problems = tuple(islice(found, MOST_PROBLEMS))
    is_all = next(found, None) is None
    return problems if is_all else (*problems, _invalid("spec", "there are more problems"))


def _problems(
    spec: NodeAssignmentSpec, topology: Topology, name: str, node_name: str
) -> Iterator[Problem]:
    if name != node_name:
        message = f"it is for the node {name}, and this node is {node_name}"
        yield _invalid("metadata.name", message)
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


def _pool_problems(pools: Pools, topology: Topology) -> Iterator[Problem]:
    yield from _cpu_problems("spec.pools.shared", pools.shared, topology)
    yield from _cpu_problems("spec.pools.reserved", pools.reserved, topology)


def _cpu_problems(field: str, cpus: CpuSet, topology: Topology) -> Iterator[Problem]:
    offline = cpus & topology.offline
    withheld = cpus & topology.withheld
    missing = cpus - topology.online - topology.offline - withheld
    has = f"online are {topology.online}"
    if missing:
        yield _invalid(field, f"this machine has no CPU {missing}; {has}")
    if offline:
        yield _invalid(field, f"CPU {offline} is offline; {has}")
    if withheld:
        yield _invalid(field, f"pods may not use CPU {withheld} of this machine; {has}")


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


def _duplicates(containers: Sequence[ContainerAssignment]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for index, one in enumerate(containers):
        first = seen.setdefault(one.key, index)
        if first != index:
            message = f"{_name(one)} is already listed at index {first}"
            yield _invalid(f"spec.containers[{index}]", message)


def _overlaps(spec: NodeAssignmentSpec) -> Iterator[Problem]:
    """Exclusive CPUs that a pool has as well, or a container of another pod.

    Containers of one pod may have the same CPUs, as in the kubelet: an init container ends before
    the containers start that use its CPUs next. A CPU of three pods is two problems, not three.
    """
    taken = _Taken()
    for index, one in enumerate(spec.containers):
        if one.exclusive:
            field = f"spec.containers[{index}].cpus"
            yield from _pool_overlaps(field, one, spec.pools)
            yield from taken.problems(field, one, "is exclusive to {} as well")
            taken.add(one)
    for index, one in enumerate(spec.containers):
        if not one.exclusive:
            yield from taken.problems(f"spec.containers[{index}].cpus", one, "is exclusive to {}")


class _Taken:
    """The exclusive CPUs of the containers so far; no two containers are compared."""

    def __init__(self) -> None:
        self._first: dict[int, ContainerAssignment] = {}
        """Each CPU with the first container that has it."""
        self._by_pod: dict[str, CpuSet] = {}
        self._all = CpuSet()

    def add(self, one: ContainerAssignment) -> None:
        self._first.update(dict.fromkeys(one.cpus - self._all, one))
        self._by_pod[one.pod_uid] = self._by_pod.get(one.pod_uid, CpuSet()) | one.cpus
        self._all |= one.cpus

    def problems(self, field: str, one: ContainerAssignment, how: str) -> Iterator[Problem]:
        """The CPUs that only other pods have so far, by the container that has them."""
        foreign = one.cpus & self._all - self._by_pod.get(one.pod_uid, CpuSet())
        while foreign:
            other = self._first[next(iter(foreign))]
            message = f"CPU {foreign & other.cpus} of {_name(one)} {how.format(_name(other))}"
            yield _invalid(field, message)
            foreign -= other.cpus


def _pool_overlaps(field: str, one: ContainerAssignment, pools: Pools | None) -> Iterator[Problem]:
    named = (("shared", pools.shared), ("reserved", pools.reserved)) if pools else ()
    for what, pool in named:
        if one.cpus & pool:
            message = f"CPU {one.cpus & pool} of {_name(one)} is in the {what} pool as well"
            yield _invalid(field, message)


def _name(one: ContainerAssignment) -> str:
    return f"{one.namespace}/{one.pod}/{one.container}"
