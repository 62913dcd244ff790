"""The node as the kernel has it: the CPUs of each container, and which are exclusive.

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
    tree: Tree, wanted: Mapping[str, Desired], stale_cpus: Mapping[str, CpuSet] = NOTHING
) -> tuple[InForce, ...]:
    """Every container of the spec that has a cgroup, with the sets read back from the kernel.

    `stale_cpus` maps cgroups to CPUs that the runtime or systemd may still write there at any
    moment: no container has those exclusively yet.
    """
    used_by_others = _used_by_others(tree, wanted, stale_cpus)
    return tuple(
        InForce(
            path,
            container,
            found.effective_cpus,
            found.effective_mems,
            _is_exclusive(found, wanted[path], used_by_others),
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
        unsaved: how many containers are exclusive in the kernel and not reported so yet, because a
            restart would not know it.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()
    unsaved: int = 0


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What must end before a container that is exclusive in the kernel is reported exclusive.

    Attributes:
        restart_spec: the spec that a restart would load now; None once `spec` is on disk. A
            container must be exclusive in both.
        stale_cpus: as in `in_force`.
    """

    restart_spec: NodeAssignmentSpec | None = None
    stale_cpus: Mapping[str, CpuSet] = field(default_factory=dict)


FINISHED: Final = Unfinished()


def summarize(
    spec: NodeAssignmentSpec,
    tree: Tree,
    desired: Mapping[str, Desired],
    naming: CgroupNaming,
    unfinished: Unfinished = FINISHED,
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
        for one in in_force(tree, desired, unfinished.stale_cpus)
    }
    restart = unfinished.restart_spec
    unsaved = _unsaved(found, restart) if restart is not None else frozenset()
    containers = tuple(
        ContainerStatus(
            pod_uid=key[0],
            container=key[1],
            cpus=one.cpus,
            mems=one.mems,
            exclusive=one.exclusive and key not in unsaved,
        )
        for key, one in sorted(found.items())
    )
    pools = _pools(spec, containers, _shared(tree, desired, naming, spec.exclusive_cpus))
    return Summary(containers, pools, running, len(unsaved))


def _unsaved(
    found: Mapping[tuple[str, str], InForce], restart_spec: NodeAssignmentSpec
) -> frozenset[tuple[str, str]]:
    """Exclusive containers that have other CPUs in `restart_spec`, or none."""
    known = {(one.pod_uid, one.container): one for one in restart_spec.containers}
    return frozenset(
        key for key, one in found.items() if one.exclusive and one.container != known.get(key)
    )


def _running(spec: NodeAssignmentSpec, tree: Tree, naming: CgroupNaming) -> Iterator[str]:
    assigned = {one.pod_uid for one in spec.containers}
    parsed = (naming.parse(path) for path in tree.cgroups)
    yield from sorted({one.pod_uid for one in parsed if one.kind is Kind.CONTAINER} & assigned)


def _shared(
    tree: Tree, desired: Mapping[str, Desired], naming: CgroupNaming, exclusive: CpuSet
) -> CpuSet:
    """The CPUs of all cgroups but those on exclusive CPUs."""
    return CpuSet.union(
        cgroup.effective_cpus
        for path, cgroup in tree.cgroups.items()
        if not desired[path].cpus <= exclusive and naming.parse(path).kind in LEAVES
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


def _is_exclusive(found: Cgroup, want: Desired, used_by_others: CpuSet) -> bool:
    whole = found.effective_cpus == want.cpus
    return want.exclusive and whole and want.cpus.isdisjoint(used_by_others)


def _used_by_others(
    tree: Tree, wanted: Mapping[str, Desired], stale_cpus: Mapping[str, CpuSet]
) -> CpuSet:
    """Exclusive CPUs that a cgroup outside of the container and its ancestors has as well."""
    exclusive: dict[int, list[str]] = {}
    for path, want in wanted.items():
        if want.exclusive:
            for cpu in want.cpus:
                exclusive.setdefault(cpu, []).append(path)
    exclusive_cpus, used_by_others = CpuSet(exclusive), CpuSet()
    for path, cgroup in tree.cgroups.items():
        for cpu in (cgroup.effective_cpus | stale_cpus.get(path, CpuSet())) & exclusive_cpus:
            if not any(related(path, one) for one in exclusive[cpu]):
                used_by_others |= CpuSet((cpu,))
    return used_by_others
