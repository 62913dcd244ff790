"""Why the memory of a container is not where its spec says. Does no I/O."""

from collections.abc import Mapping

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import Cgroup, Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.in_force.lack import Lack, name_of


def unbound(found: Cgroup, want: Desired) -> Lack | None:
    """Why a container's memory is not on the NUMA nodes of the spec; None if it is, or is free."""
    one = want.container
    if one is None or not one.mems or found.effective_mems == want.mems:
        return None
    why = f"has NUMA node {found.effective_mems} instead of {want.mems}"
    if found.mems != want.mems:
        return Lack(name_of(one), Reason.APPLYING, f"{why} so far")
    why += f": give {want.mems} to the parents of cgroup {found.path} (cpuset.mems)"
    return Lack(name_of(one), Reason.MEMORY_WITHHELD, why)


def bound_pods(
    spec: NodeAssignmentSpec, tree: Tree, desired: Mapping[str, Desired]
) -> frozenset[str]:
    """The pods whose memory is on the NUMA nodes of the spec: no container has others yet."""
    others = {
        want.container.pod_uid
        for path, want in desired.items()
        if want.container is not None
        and path in tree.cgroups
        and unbound(tree.cgroups[path], want) is not None
    }
    return frozenset(one.pod_uid for one in spec.containers if one.mems) - others


def container_cgroups(tree: Tree, desired: Mapping[str, Desired]) -> dict[tuple[str, str], str]:
    """The cgroup of each container of the spec, by pod UID and name."""
    return {
        want.container.key: path
        for path, want in desired.items()
        if want.container is not None and desired[tree.parents[path]].container is None
    }
