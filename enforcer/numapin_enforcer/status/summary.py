"""What the kernel's answer means for the status: which container has what, and what alone.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import (
    ContainerAssignment,
    ContainerStatus,
    NodeAssignmentSpec,
    PoolsInForce,
)
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Cgroup, Tree, related
from numapin_enforcer.plan.desired import Desired

NOTHING: Final[Mapping[str, CpuSet]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class InForce:
    """One container of the spec as the kernel has it.

    `exclusive` is True once it has all its exclusive CPUs, and no other cgroup has any of them;
    its ancestors and descendants do not count.
    """

    path: str
    container: ContainerAssignment
    cpus: CpuSet
    mems: MemSet
    exclusive: bool


def in_force(
    tree: Tree, wanted: Mapping[str, Desired], lingering: Mapping[str, CpuSet] = NOTHING
) -> tuple[InForce, ...]:
    """Every container of the spec that has a cgroup, with the sets read back from the kernel.

    `lingering` maps cgroups to CPUs that runtime or systemd may still write there at any moment: no
    container has those exclusively yet.
    """
    intruded = _intruded(tree, wanted, lingering)
    return tuple(
        InForce(
            path,
            container,
            found.effective_cpus,
            found.effective_mems,
            _owns(found, wanted[path], intruded),
        )
        for path, found in tree.cgroups.items()
        if (container := wanted[path].container)
        and wanted[tree.parents.get(path, path)].container is None
    )


LEAVES: Final = frozenset({Kind.CONTAINER, Kind.NESTED, Kind.OTHER})


@dataclass(frozen=True, slots=True)
class Summary:
    """A node as its kernel has it.

    Attributes:
        containers: the spec's containers that run.
        pools: the pools in force.
        running: UIDs of the spec's pods that have a container's cgroup, the sandbox's included. The
            kubelet removes a pod's own cgroup seconds later: an empty one has no CPUs to free.
        unkept: how many containers have their CPUs exclusively and are not reported so yet, because
            a restart would not know it.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()
    unkept: int = 0


@dataclass(frozen=True, slots=True)
class Doubt:
    """Reasons not to report a container as exclusive although the kernel agrees.

    Attributes:
        until_kept: the spec that a restart would load now, None once `spec` is on disk. A container
            must be exclusive in both.
        lingering: as in `in_force`.
    """

    until_kept: NodeAssignmentSpec | None = None
    lingering: Mapping[str, CpuSet] = field(default_factory=dict)


SURE: Final = Doubt()


def summarize(
    spec: NodeAssignmentSpec,
    tree: Tree,
    desired: Mapping[str, Desired],
    naming: CgroupNaming,
    doubt: Doubt = SURE,
) -> Summary:
    """What `tree`, read back after all writes, means for `spec`.

    If nothing is desired the summary has only what runs; if all is released it is empty.
    """
    if spec.mode == "None":
        return Summary()
    running = tuple(_running(spec, tree, naming))
    if not desired:
        return Summary(running=running)
    found = {
        (one.container.pod_uid, one.container.container): one
        for one in in_force(tree, desired, doubt.lingering)
    }
    kept = doubt.until_kept
    unkept = _unkept(found, kept) if kept is not None else frozenset()
    containers = tuple(
        ContainerStatus(
            pod_uid=key[0],
            container=key[1],
            cpus=one.cpus,
            mems=one.mems,
            exclusive=one.exclusive and key not in unkept,
        )
        for key, one in sorted(found.items())
    )
    shared = _shared(tree, desired, naming, spec.exclusive_cpus)
    pools = _pools(spec, containers, shared)
    return Summary(containers, pools, running, len(unkept))


def _unkept(
    found: Mapping[tuple[str, str], InForce], kept: NodeAssignmentSpec
) -> frozenset[tuple[str, str]]:
    """Exclusive containers that have other CPUs in `kept`, or none."""
    known = {(one.pod_uid, one.container): one for one in kept.containers}
    return frozenset(
        key for key, one in found.items() if one.exclusive and one.container != known.get(key)
    )


def _running(spec: NodeAssignmentSpec, tree: Tree, naming: CgroupNaming) -> Iterator[str]:
    assigned = {one.pod_uid for one in spec.containers}
    parsed = (naming.parse(path) for path in tree.cgroups)
    yield from sorted({one.pod_uid for one in parsed if one.kind is Kind.CONTAINER} & assigned)


def _shared(
    tree: Tree, desired: Mapping[str, Desired], naming: CgroupNaming, owned: CpuSet
) -> CpuSet:
    """The CPUs of all cgroups but those on exclusive CPUs."""
    return CpuSet.union(
        cgroup.effective_cpus
        for path, cgroup in tree.cgroups.items()
        if not desired[path].cpus <= owned and naming.parse(path).kind in LEAVES
    )


def _pools(
    spec: NodeAssignmentSpec, containers: Iterable[ContainerStatus], shared: CpuSet
) -> PoolsInForce | None:
    """The pools in force; a shared pool without a container is as in the spec."""
    if spec.pools is None:
        return None
    exclusive = CpuSet.union(one.cpus for one in containers if one.exclusive)
    return PoolsInForce(
        reserved=spec.pools.reserved, shared=shared or spec.pools.shared, exclusive=exclusive
    )


def _owns(found: Cgroup, want: Desired, intruded: CpuSet) -> bool:
    whole = found.effective_cpus == want.cpus
    return want.exclusive and whole and want.cpus.isdisjoint(intruded)


def _intruded(tree: Tree, wanted: Mapping[str, Desired], lingering: Mapping[str, CpuSet]) -> CpuSet:
    """Exclusive CPUs that a cgroup outside of the container and its ancestors has as well."""
    owners: dict[int, list[str]] = {}
    for path, want in wanted.items():
        if want.exclusive:
            for cpu in want.cpus:
                owners.setdefault(cpu, []).append(path)
    owned, intruded = CpuSet(owners), CpuSet()
    for path, cgroup in tree.cgroups.items():
        for cpu in (cgroup.effective_cpus | lingering.get(path, CpuSet())) & owned:
            if not any(related(path, owner) for owner in owners[cpu]):
                intruded |= CpuSet((cpu,))
    return intruded
