"""The cgroup that the enforcer may not set itself: that of its own container. Does no I/O.

Where cgroup v2 is mounted with `nsdelegate`, as systemd does, no process may set the cgroup that is
the root of its cgroup namespace, and a container has a namespace of its own. Source: Linux,
Documentation/admin-guide/cgroup-v2.rst, "Delegation Containment". The container has no set of its
own and follows its pod, unless others set it: the kubelet's static policy, for one. Then it does
not get CPUs that become shared, and if all that it has become exclusive, its pod cannot be
narrowed, and nobody is granted them. The runtime may set it.
"""

import errno
from collections.abc import Iterable, Mapping

from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.tree import Tree, parent
from numapin_enforcer.cgroups.write import Setting
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.runtime.container_index import Row
from numapin_enforcer.runtime.interface import ContainerResources


def mark_own(rows: Iterable[Row], failures: Iterable[Failure]) -> None:
    """Mark the containers whose cgroups the kernel keeps from us, by what it refused in a pass."""
    refused = {
        one.write.path
        for one in failures
        if one.error.number == errno.EPERM and one.write.setting is Setting.CPUS
    }
    for row in rows if refused else ():
        row.is_own = row.is_own or row.path in refused


def own_resources(
    rows: Iterable[Row], tree: Tree, desired: Mapping[str, Desired]
) -> dict[str, ContainerResources]:
    """Container id to what the runtime must set: all CPUs, so that it has those of its pod.

    Nothing for one whose pod must have other CPUs than it: it would get them.

    Args:
        rows: the containers.
        tree: the cgroups.
        desired: what each of them must have.
    """
    return {
        row.id_: ContainerResources(desired[tree.root].cpus)
        for row in rows
        if row.is_own and _follows_its_pod(desired, row.path)
    }


def _follows_its_pod(desired: Mapping[str, Desired], path: str) -> bool:
    wanted, pod = desired.get(path), desired.get(parent(path))
    return (
        wanted is not None
        and pod is not None
        and not wanted.exclusive_container
        and wanted.cpus == pod.cpus
    )
