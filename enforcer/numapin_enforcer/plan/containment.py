"""The sets that one cgroup must have, and how parents contain their children. Does no I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree, Version

FoundMems = Mapping[str, MemSet]
"""Cgroups that were bound to NUMA nodes, with what they asked for before; empty is "as parent"."""

NONE_BOUND: Final[FoundMems] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Desired:
    """The sets that one cgroup must have; neither is empty.

    `container` is the container of the spec that the cgroup belongs to. `exclusive` means that no
    cgroup of another container may have its CPUs.
    """

    cpus: CpuSet
    mems: MemSet
    container: ContainerAssignment | None = None
    exclusive: bool = False

    @property
    def exclusive_container(self) -> str:
        """The container that has `cpus` exclusively, or empty."""
        if self.container is None or not self.exclusive:
            return ""
        return f"{self.container.pod_uid}/{self.container.container}"


def contain(tree: Tree, wanted: Mapping[str, Desired], topology: Topology) -> dict[str, Desired]:
    """`wanted`, each parent widened to contain its children; of kubepods see `kubepods`."""
    result: dict[str, Desired] = {}
    for path in reversed(tuple(tree.parents)):
        result[path] = widened(wanted[path], (result[child] for child in tree.children[path]))
    children = [result[child] for child in tree.children[tree.root]]
    return {
        tree.root: kubepods(tree, children, topology),
        **{path: result[path] for path in wanted},
    }


def widened(wanted: Desired, children: Iterable[Desired]) -> Desired:
    """`wanted`, and all that the cgroup's children must have."""
    cpus, mems = wanted.cpus.mask, wanted.mems.mask
    for one in children:
        cpus |= one.cpus.mask
        mems |= one.mems.mask
    if (cpus, mems) == (wanted.cpus.mask, wanted.mems.mask):
        return wanted
    sets = (CpuSet.from_mask(cpus), MemSet.from_mask(mems))
    return Desired(*sets, wanted.container, wanted.exclusive)


def kubepods(tree: Tree, children: Iterable[Desired], topology: Topology) -> Desired:
    """The root. On v2 as it is: what it lacks, an administrator or its parent gives it not.

    On v1, where it loses offline CPUs for good, as it is if it contains the CPUs that its
    descendants need, else all online ones; and the NUMA nodes that it has or its descendants need.
    """
    found = tree.cgroups[tree.root]
    cpus = found.effective_cpus & topology.online
    if tree.version is Version.V2:
        return Desired(cpus or topology.online, found.effective_mems or topology.mems)
    below = widened(Desired(CpuSet(), found.effective_mems), children)
    enough = bool(cpus) and below.cpus <= cpus
    return Desired(cpus if enough else topology.online, below.mems or topology.mems)


def left_mems(tree: Tree, path: str, found_mems: FoundMems) -> MemSet:
    """The NUMA nodes of a cgroup that no spec binds: found, else what it has, else its parent's."""
    mems = tree.cgroups[path].effective_mems
    if path in found_mems:
        mems = found_mems[path]
    while not mems and path != tree.root:
        path = tree.parents[path]
        mems = tree.cgroups[path].effective_mems
    return mems


def restored_mems(
    tree: Tree, desired: Mapping[str, Desired], found_mems: FoundMems
) -> frozenset[str]:
    """The cgroups of `found_mems` that are gone, or that nothing binds and that have it again.

    A cgroup may be bound before it is known which container it is.
    """

    def is_restored(path: str) -> bool:
        wanted, found = desired[path], left_mems(tree, path, found_mems)
        is_bound = wanted.container is not None and bool(wanted.container.mems)
        return not is_bound and tree.cgroups[path].effective_mems == wanted.mems == found

    return frozenset(path for path in found_mems if path not in tree.cgroups or is_restored(path))


def in_containers(tree: Tree, naming: CgroupNaming) -> frozenset[str]:
    """The cgroups of containers and sandboxes, and all that is inside them or unknown."""
    above = {Kind.ROOT, Kind.QOS, Kind.POD}
    return frozenset(path for path in tree.parents if naming.parse(path).kind not in above)
