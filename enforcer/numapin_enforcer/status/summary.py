"""Pure: what the kernel's answer means for the status: who has what, and who has it alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerStatus, NodeAssignmentSpec, PoolsInForce
from numapin_enforcer.cgroups.naming import Kind, Layout
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.desired import Desired
from numapin_enforcer.status.in_force import InForce, in_force

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
        unkept: how many containers have their CPUs alone and are not told as owners yet, because a
            restart would not know it.
    """

    containers: tuple[ContainerStatus, ...] = ()
    pools: PoolsInForce | None = None
    running: tuple[str, ...] = ()
    unkept: int = 0


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why one who owns CPUs by the kernel's word is not told as an owner yet.

    Attributes:
        until_kept: while `spec` is not kept on the node, what is: an enforcer that is killed now
            begins with that, so nobody is told as an owner who is none in it as well.
        lingering: as in `in_force`.
    """

    until_kept: NodeAssignmentSpec | None = None
    lingering: Mapping[str, CpuSet] = field(default_factory=dict)


SURE: Final = Doubt()


def summarize(
    spec: NodeAssignmentSpec,
    tree: Tree,
    desired: Mapping[str, Desired],
    layout: Layout,
    doubt: Doubt = SURE,
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
    shared = _shared(tree, desired, layout, spec.exclusive_cpus)
    pools = _pools(spec, containers, shared)
    return Summary(containers, pools, running, len(unkept))


def _unkept(
    found: Mapping[tuple[str, str], InForce], kept: NodeAssignmentSpec
) -> frozenset[tuple[str, str]]:
    """Who owns CPUs and would not, or others, by the word of `kept`."""
    known = {(one.pod_uid, one.container): one for one in kept.containers}
    return frozenset(
        key for key, one in found.items() if one.exclusive and one.container != known.get(key)
    )


def _running(spec: NodeAssignmentSpec, tree: Tree, layout: Layout) -> Iterator[str]:
    assigned = {one.pod_uid for one in spec.containers}
    places = (layout.place(path) for path in tree.cgroups)
    yield from sorted({one.pod_uid for one in places if one.kind is Kind.CONTAINER} & assigned)


def _shared(tree: Tree, desired: Mapping[str, Desired], layout: Layout, owned: CpuSet) -> CpuSet:
    """What those may use who own nothing and do not wait on an owner's CPUs for their name."""
    return CpuSet.union(
        cgroup.effective_cpus
        for path, cgroup in tree.cgroups.items()
        if not desired[path].cpus <= owned and layout.place(path).kind in LEAVES
    )


def _pools(
    spec: NodeAssignmentSpec, containers: Iterable[ContainerStatus], shared: CpuSet
) -> PoolsInForce | None:
    """The pools in force; while nobody runs in the shared one it is as the spec says."""
    if spec.pools is None:
        return None
    exclusive = CpuSet.union(one.cpus for one in containers if one.exclusive)
    return PoolsInForce(
        reserved=spec.pools.reserved, shared=shared or spec.pools.shared, exclusive=exclusive
    )
