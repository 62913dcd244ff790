"""What systemd must have for the kubelet's slices, if it creates the cgroups.

Whenever a property of a slice changes (the kubelet sets the weight of a QoS class each minute) or a
container starts or ends, systemd writes the slice's properties again. It clears a cpuset that it
does not know, and disables the cpuset controller where no unit requests it. The kernel refuses to
clear the cpuset of a cgroup with processes, so it is an empty QoS class that loses its fence. A
pod's slice always has processes, and the runtime updates the scopes.
Source: systemd src/core/cgroup.c, `unit_update_cgroup` and `cgroup_context_apply`.

Does no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos
from numapin_enforcer.cgroups.tree import Tree, Version
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.systemd.interface import SliceSets

_NESTED_CLASSES: Final = (Qos.BURSTABLE, Qos.BEST_EFFORT)


def unit_name(cgroup: str) -> str:
    """The unit of a slice's cgroup. Source: systemd.slice(5)."""
    return cgroup.rpartition("/")[2]


def qos_slices(tree: Tree, naming: CgroupNaming) -> Iterator[str]:
    """The slices whose sets systemd must have; on cgroup v1 it does not write cpusets."""
    if naming.driver is Driver.SYSTEMD and tree.version is Version.V2:
        paths = (naming.qos_path(qos) for qos in _NESTED_CLASSES)
        yield from (path for path in paths if path in tree.cgroups)


def slice_sets(
    desired: Mapping[str, Desired], tree: Tree, naming: CgroupNaming
) -> dict[str, SliceSets | None]:
    """The sets that systemd must have, by slice: those the kernel was asked for and has.

    None is "as before": the kernel does not have the desired sets yet.
    """
    sets: dict[str, SliceSets | None] = {}
    for path in qos_slices(tree, naming):
        found, wanted = tree.cgroups[path], desired[path]
        has = (found.effective_cpus, found.effective_mems) == (wanted.cpus, wanted.mems)
        sets[path] = SliceSets(found.cpus, found.mems) if has else None
    return sets
