"""Pure: which containers there are, and what the runtime should remember of them."""

from collections.abc import Iterator, Mapping
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import Kind, Layout
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.desired import Desired
from numapin_enforcer.runtime.client import UNLIMITED_QUOTA, ContainerResources

QUOTA_LIFTED: Final = ContainerResources(CpuSet(), quota_us=UNLIMITED_QUOTA)
"""What the runtime may have from an earlier process of ours: no CFS limit."""


def find_containers(tree: Tree, layout: Layout) -> Iterator[tuple[str, tuple[str, str]]]:
    """Container id (a sandbox's, too) to its cgroup's path and its pod's UID."""
    for path in tree.cgroups:
        place = layout.place(path)
        if place.kind is Kind.CONTAINER:
            yield place.container_id, (path, place.pod_uid)


def resources_to_send(
    desired: Mapping[str, Desired], tree: Tree, path: str, told: ContainerResources | None
) -> ContainerResources | None:
    """What the runtime should remember of a container: what an owner has, and then what it had.

    Args:
        desired: what each cgroup of `tree` should have.
        tree: what the kernel has.
        path: the container's cgroup.
        told: what the runtime was told before; None for most, of which it is never told.
    """
    wanted = desired.get(path)
    if wanted is None or (not wanted.owner and told is None):
        return None
    if tree.cgroups[path].effective_cpus != wanted.cpus:
        return told
    assigned = wanted.container is not None and bool(wanted.container.mems)
    return ContainerResources(
        wanted.cpus, wanted.mems if assigned or (told and told.mems) else MemSet()
    )
