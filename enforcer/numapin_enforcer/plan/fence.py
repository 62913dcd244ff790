"""The sets that keep exclusive CPUs exclusive while no enforcer runs."""

from collections.abc import Mapping

from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version
from numapin_enforcer.plan.containment import Desired, contain
from numapin_enforcer.plan.desired import desire


def fence(
    spec: NodeAssignmentSpec, tree: Tree, naming: CgroupNaming, topology: Topology
) -> dict[str, Desired]:
    """The sets with which no cgroup has CPUs that another pod has exclusively.

    A cgroup loses every CPU that another pod has exclusively. A cgroup that has no CPU yet, or none
    left, gets the shared pool, as a container that an enforcer does not know. No cgroup is granted
    exclusive CPUs, because only the runtime knows which container a cgroup is. So a cgroup loses
    the exclusive CPUs of its own pod only if it is as created, with all that its pod has. Any other
    was set by an enforcer or by hand, and can be the exclusive container.

    Args:
        spec: the last accepted spec, whose `pools` are set.
        tree: the cgroups as read.
        naming: how to read their paths.
        topology: the machine's present state.

    Returns:
        An entry for each cgroup of `tree`, parents containing their children.
    """
    unnamed = desire(spec, tree, naming, {}, topology)
    limits: dict[str, Desired] = {}
    wanted: dict[str, Desired] = {}
    for path, parent in tree.parents.items():
        cgroup, unknown = tree.cgroups[path], unnamed[path]
        parsed = naming.parse(path)
        was_set = parsed.kind is Kind.NESTED or (
            parsed.kind is not Kind.POD
            and bool(parsed.pod_uid)
            and not _as_created(tree, cgroup, tree.cgroups[parent])
        )
        limits[path] = limits[parent] if was_set else unknown
        wanted[path] = Desired(
            cgroup.effective_cpus & limits[path].cpus or unknown.cpus,
            cgroup.effective_mems or unknown.mems,
        )
    return contain(tree, wanted, topology)


def fence_new(
    spec: NodeAssignmentSpec, tree: Tree, naming: CgroupNaming, topology: Topology
) -> dict[str, Desired]:
    """As `fence`, but only for cgroups that nothing has set since they were created.

    For the time in which an enforcer has the lock and makes no progress: what it has set stays,
    because it may follow a newer spec than the saved one, and may go on at any moment.

    Args: as for `fence`.
    """
    fenced = fence(spec, tree, naming, topology)
    wanted: dict[str, Desired] = {}
    for path, parent in tree.parents.items():
        one = tree.cgroups[path]
        is_class = naming.parse(path).kind is Kind.QOS
        is_new = not is_class and _as_created(tree, one, tree.cgroups[parent])
        wanted[path] = fenced[path] if is_new else Desired(one.effective_cpus, one.effective_mems)
    root = tree.cgroups[tree.root]
    contained = contain(tree, wanted, topology)
    return contained | {tree.root: Desired(root.effective_cpus, root.effective_mems)}


def breached(tree: Tree, wanted: Mapping[str, Desired]) -> bool:
    """True if any cgroup has CPUs it must not use, or none at all."""
    return any(one.effective_cpus != wanted[path].cpus for path, one in tree.cgroups.items())


def _as_created(tree: Tree, cgroup: Cgroup, parent: Cgroup) -> bool:
    """Whether nothing has set it since: on v1 runc copies the parent's set to a new cgroup.

    What is below a new cgroup has the same set, or none.
    """
    if tree.version is Version.V1 and cgroup.cpus == parent.cpus:
        below = (tree.cgroups[child].cpus for child in tree.children[cgroup.path])
        return all(not cpus or cpus == cgroup.cpus for cpus in below)
    return not cgroup.cpus
