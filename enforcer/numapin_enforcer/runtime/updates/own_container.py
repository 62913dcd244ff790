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
from numapin_enforcer.runtime.interface import ContainerResources


class OwnContainer:
    """Containers that have no CPUs of their own, and whose cgroups the kernel keeps from us."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def resources(
        self,
        failures: Iterable[Failure],
        tree: Tree,
        desired: Mapping[str, Desired],
        found: Mapping[str, tuple[str, str]],
    ) -> dict[str, ContainerResources]:
        """Container id to what the runtime must set: all CPUs, so that it has those of its pod.

        Nothing for one whose pod must have other CPUs than it: it would get them.

        Args:
            failures: what the kernel refused in the last pass.
            tree: the cgroups after that pass.
            desired: what each of them must have.
            found: container id to its cgroup's path and its pod's UID.
        """
        refused = {
            one.write.path
            for one in failures
            if one.error.number == errno.EPERM and one.write.setting is Setting.CPUS
        }
        if refused:
            self._ids |= {id_ for id_, (path, _) in found.items() if path in refused}
        self._ids &= found.keys()
        return {
            id_: ContainerResources(desired[tree.root].cpus)
            for id_ in self._ids
            if _follows_its_pod(desired, found[id_][0])
        }


def _follows_its_pod(desired: Mapping[str, Desired], path: str) -> bool:
    wanted, pod = desired.get(path), desired.get(parent(path))
    return (
        wanted is not None
        and pod is not None
        and not wanted.exclusive_container
        and wanted.cpus == pod.cpus
    )
