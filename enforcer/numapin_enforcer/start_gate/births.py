"""With which CPUs and NUMA nodes a container may be made. Does no I/O."""

from collections.abc import Mapping
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.naming import CgroupNaming, InvalidIdError, Qos
from numapin_enforcer.cgroups.tree import Tree, related
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import Rules

PINNED: Final = "Pinned"
SHARED: Final = "Shared"
"""How a container began: with its own sets, or not."""


def pod_cgroup(tree: Tree, naming: CgroupNaming, pod_uid: str) -> str | None:
    """The cgroup of a pod; None if it has none."""
    try:
        paths = (naming.pod_path(qos, pod_uid) for qos in Qos)
        return next((path for path in paths if path in tree.cgroups), None)
    except InvalidIdError:
        return None


def born_with(
    one: ContainerAssignment,
    rules: Rules,
    tree: Tree,
    desired: Mapping[str, Desired],
    naming: CgroupNaming,
) -> Desired | None:
    """The sets with which a container may be made; None if it may not have its own yet.

    As in a plan, no container is granted exclusive CPUs before all other cgroups have left them.
    And the runtime can set only what the pod's cgroup has.

    Args:
        one: what the spec says of the container, which has no cgroup yet.
        rules: those of the spec.
        tree: the cgroups as read back after a pass.
        desired: what each of them must have.
        naming: how to read their paths.
    """
    wanted, pod = rules.assigned(one), pod_cgroup(tree, naming, one.pod_uid)
    if pod is None or wanted.exclusive is not one.exclusive:
        return None
    above = tree.cgroups[pod]
    if not (wanted.cpus <= above.effective_cpus and wanted.mems <= above.effective_mems):
        return None
    if wanted.exclusive and _is_used(wanted.cpus, pod, tree, desired):
        return None
    return wanted


def _is_used(cpus: CpuSet, pod: str, tree: Tree, desired: Mapping[str, Desired]) -> bool:
    """Whether a cgroup has some of these CPUs that is not of the pod, or is not exclusive there.

    Containers of one pod may have the same CPUs one after the other, as in the kubelet.
    """
    return any(
        not cgroup.effective_cpus.isdisjoint(cpus)
        and (path not in tree.children[pod] or not desired[path].exclusive)
        for path, cgroup in tree.cgroups.items()
        if not (related(pod, path) and path not in tree.children[pod])
    )
