"""Which resources the runtime must have for a container, by what is desired and was sent before."""

from collections.abc import Mapping
from dataclasses import dataclass

from numapin_api.cpuset import MemSet
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.runtime.interface import ContainerResources


@dataclass(frozen=True, slots=True)
class ResourcesToSend:
    """What the runtime must have for a container.

    `are_new` is False if `resources` are what it was sent before, since the kernel does not have
    the desired CPUs yet.
    """

    resources: ContainerResources
    are_new: bool


def resources_to_send(
    desired: Mapping[str, Desired],
    tree: Tree,
    path: str,
    sent: ContainerResources | None,
    *,
    grows: bool = False,
) -> ResourcesToSend | None:
    """What the runtime must have for a container: its exclusive CPUs, and later what replaced them.

    NUMA nodes are sent once the kernel has them: it may refuse them, and what the cgroup had before
    must be saved first.

    Args:
        desired: what each cgroup of `tree` should have.
        tree: what the kernel has.
        path: the container's cgroup.
        sent: what the runtime was sent before; None if nothing.
        grows: whether the kernel gets the desired CPUs by this update; see `leave_growth`.

    Returns:
        None for a container that was never exclusive: the runtime is sent nothing for it.
    """
    wanted = desired.get(path)
    if wanted is None or (not wanted.exclusive_container and sent is None):
        return None
    found, sent_mems = tree.cgroups[path], sent.mems if sent is not None else MemSet()
    if found.effective_cpus != wanted.cpus and not grows:
        return ResourcesToSend(sent, are_new=False) if sent is not None else None
    assigned = wanted.container is not None and bool(wanted.container.mems)
    is_bound = (assigned or bool(sent_mems)) and found.effective_mems == wanted.mems
    resources = ContainerResources(wanted.cpus, wanted.mems if is_bound else sent_mems)
    return ResourcesToSend(resources, are_new=True)
