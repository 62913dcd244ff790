"""Pure: what the kernel's answer means for the status: who has what, and who has it alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerStatus, NodeAssignmentSpec, PoolsInForce
from numapin_enforcer.cgroups import Tree
from numapin_enforcer.desired import Desired
from numapin_enforcer.inforce import in_force
from numapin_enforcer.layout import Kind, Layout

LEAVES: Final = frozenset({Kind.CONTAINER, Kind.NESTED, Kind.OTHER})


@dataclass(frozen=True, slots=True)
class Summary:
    """A node as its kernel has it.

    Attributes:
        containers: the spec's containers that run.
        pools: the pools in force.
        running: UIDs of the spec's pods of which a container's cgroup exists, the sandbox's
            included. The kubelet removes the pod's own cgroup seconds after all that was in it:
            an empty one holds nobody's CPUs.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()


def summarize(
    spec: NodeAssignmentSpec, tree: Tree, desired: Mapping[str, Desired], layout: Layout
) -> Summary:
    """Tell what `tree`, read back after all writes, means for `spec`.

    Without anything desired only what runs is told, and nothing when all is given back.
    """
    if spec.mode == "None":
        return Summary()
    running = tuple(_running(spec, tree, layout))
    if not desired:
        return Summary(running=running)
    found = {
        (one.container.pod_uid, one.container.container): one for one in in_force(tree, desired)
    }
    containers = tuple(
        ContainerStatus(
            pod_uid=uid, container=name, cpus=one.cpus, mems=one.mems, exclusive=one.exclusive
        )
        for (uid, name), one in sorted(found.items())
    )
    exclusive = CpuSet()
    for one in containers:
        exclusive |= one.cpus if one.exclusive else CpuSet()
    shared = _shared(tree, desired, layout)
    return Summary(containers, _pools(spec, shared, exclusive), running)


def _running(spec: NodeAssignmentSpec, tree: Tree, layout: Layout) -> Iterator[str]:
    assigned = {one.pod_uid for one in spec.containers}
    places = (layout.place(path) for path in tree.cgroups)
    yield from sorted({one.pod_uid for one in places if one.kind is Kind.CONTAINER} & assigned)


def _shared(tree: Tree, desired: Mapping[str, Desired], layout: Layout) -> CpuSet:
    """What those may use who own nothing."""
    shared = CpuSet()
    for path, cgroup in tree.cgroups.items():
        if not desired[path].owner and layout.place(path).kind in LEAVES:
            shared |= cgroup.effective_cpus
    return shared


def _pools(spec: NodeAssignmentSpec, shared: CpuSet, exclusive: CpuSet) -> PoolsInForce | None:
    """The pools in force; while nobody runs in the shared one it is as the spec says."""
    if spec.pools is None:
        return None
    return PoolsInForce(
        reserved=spec.pools.reserved, shared=shared or spec.pools.shared, exclusive=exclusive
    )
