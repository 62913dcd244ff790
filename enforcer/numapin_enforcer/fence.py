"""Pure: who must leave whose CPUs while no enforcer is there to see to it."""

from collections.abc import Set as AbstractSet

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_enforcer.cgroups import Tree
from numapin_enforcer.desired import Desired, contain, desire
from numapin_enforcer.layout import Kind, Layout


def fence(
    spec: NodeAssignmentSpec,
    tree: Tree,
    layout: Layout,
    topology: Topology,
    elders: AbstractSet[str],
) -> dict[str, Desired]:
    """What every cgroup of `tree` should have so that nobody has CPUs that another pod owns.

    Whoever has a CPU that another pod owns loses it; whoever has nothing yet, or nothing left, gets
    what an enforcer would give a container that it does not know: the shared pool. Nobody is
    granted CPUs of his own. Which container a cgroup is for only the runtime could tell, so one of
    an owner's pod keeps its pod's own CPUs if it was there before (it is in `elders`) or stands on
    the very set of one of the pod's owners; a new one is taken off them, too.

    Args:
        spec: the last accepted spec, whose `pools` are set.
        tree: what runs.
        layout: how to read its paths.
        topology: the machine now.
        elders: the cgroups that an enforcer may have seen to.

    Returns:
        An entry for each cgroup of `tree`, parents containing their children.
    """
    unknown = desire(spec, tree, layout, {}, topology)
    pods: dict[str, str] = {}
    wanted: dict[str, Desired] = {}
    for path, above in tree.parents.items():
        is_pod = layout.place(path).kind is Kind.POD
        pods[path] = path if is_pod else pods.get(above, path)
        cgroup, newcomer = tree.cgroups[path], unknown[path]
        limit = unknown[pods[path]] if path in elders else newcomer
        wanted[path] = Desired(
            cgroup.effective_cpus & limit.cpus or newcomer.cpus,
            cgroup.effective_mems or newcomer.mems,
        )
    return contain(tree, wanted, topology)


def breached(tree: Tree, wanted: dict[str, Desired]) -> bool:
    """Whether anybody has what he should not, or nothing yet."""
    return any(one.effective_cpus != wanted[path].cpus for path, one in tree.cgroups.items())
