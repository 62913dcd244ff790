"""Pure: what of the desired state the kernel really has, for the status."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Tree, related
from numapin_enforcer.plan.desired import Desired

NOTHING: Final[Mapping[str, CpuSet]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class InForce:
    """One container of the spec as the kernel has it.

    `exclusive` is True once it has all the CPUs that it is to own, and no cgroup has any of them
    but its own, those inside it and those around it.
    """

    path: str
    container: ContainerAssignment
    cpus: CpuSet
    mems: MemSet
    exclusive: bool


def in_force(
    tree: Tree, wanted: Mapping[str, Desired], lingering: Mapping[str, CpuSet] = NOTHING
) -> tuple[InForce, ...]:
    """Every container of the spec that has a cgroup, with the sets read back from the kernel.

    `lingering` is what a cgroup may be given at any moment by somebody who remembers it so: whoever
    is to own a CPU in it cannot count on it yet.
    """
    intruded = _intruded(tree, wanted, lingering)
    return tuple(
        InForce(
            path,
            container,
            found.effective_cpus,
            found.effective_mems,
            _owns(found, wanted[path], intruded),
        )
        for path, found in tree.cgroups.items()
        if (container := wanted[path].container)
        and wanted[tree.parents.get(path, path)].container is None
    )


def _owns(found: Cgroup, want: Desired, intruded: CpuSet) -> bool:
    whole = found.effective_cpus == want.cpus
    return want.exclusive and whole and want.cpus.isdisjoint(intruded)


def _intruded(tree: Tree, wanted: Mapping[str, Desired], lingering: Mapping[str, CpuSet]) -> CpuSet:
    """The CPUs with an owner that a cgroup has which neither is, holds, nor is inside its owner."""
    owners: dict[int, list[str]] = {}
    for path, want in wanted.items():
        if want.exclusive:
            for cpu in want.cpus:
                owners.setdefault(cpu, []).append(path)
    owned, intruded = CpuSet(owners), CpuSet()
    for path, cgroup in tree.cgroups.items():
        for cpu in (cgroup.effective_cpus | lingering.get(path, CpuSet())) & owned:
            if not any(related(path, owner) for owner in owners[cpu]):
                intruded |= CpuSet((cpu,))
    return intruded
