"""Pure: who must leave whose CPUs while no enforcer is there to see to it."""

from collections.abc import Mapping

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import Kind, Layout
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version
from numapin_enforcer.plan.desired import Desired, contain, desire


def fence(
    spec: NodeAssignmentSpec, tree: Tree, layout: Layout, topology: Topology
) -> dict[str, Desired]:
    """What every cgroup of `tree` should have so that nobody has CPUs that another owns.

    Whoever has a CPU that another pod owns loses it; whoever has nothing yet, or nothing left, gets
    what an enforcer would give a container that it does not know: the shared pool. Nobody is
    granted CPUs of his own. Which container a cgroup is for only the runtime could tell. So one of
    an owner's pod is taken off the pod's own CPUs only if it is as it was born, with all that its
    pod has: any other was seen to by an enforcer, or set by hand, and may be the owner.

    Args:
        spec: the last accepted spec, whose `pools` are set.
        tree: what runs.
        layout: how to read its paths.
        topology: the machine now.

    Returns:
        An entry for each cgroup of `tree`, parents containing their children.
    """
    unknown = desire(spec, tree, layout, {}, topology)
    limits: dict[str, Desired] = {}
    wanted: dict[str, Desired] = {}
    for path, above in tree.parents.items():
        cgroup, newcomer = tree.cgroups[path], unknown[path]
        place = layout.place(path)
        seen_to = place.kind is Kind.NESTED or (
            place.kind is not Kind.POD
            and bool(place.pod_uid)
            and not _as_born(tree, cgroup, tree.cgroups[above])
        )
        limits[path] = limits[above] if seen_to else newcomer
        wanted[path] = Desired(
            cgroup.effective_cpus & limits[path].cpus or newcomer.cpus,
            cgroup.effective_mems or newcomer.mems,
        )
    return contain(tree, wanted, topology)


def breached(tree: Tree, wanted: Mapping[str, Desired]) -> bool:
    """True if any cgroup has CPUs it must not use, or none at all."""
    return any(one.effective_cpus != wanted[path].cpus for path, one in tree.cgroups.items())


def _as_born(tree: Tree, cgroup: Cgroup, above: Cgroup) -> bool:
    """Whether nobody has set it: on v1 runc gives a new cgroup a copy of what is around it."""
    return not cgroup.cpus or (tree.version is Version.V1 and cgroup.cpus == above.cpus)
