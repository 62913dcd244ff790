"""Writes that set the CPUs of a cgroup once more, by way of another set.

The kernel gives the threads of a cgroup its CPUs only when these change. Source: Linux,
kernel/cgroup/cpuset.c, `update_cpumasks_hier`, which calls `cpuset_update_tasks_cpumask`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree, Version, contains
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import exclusive_cpus
from numapin_enforcer.plan.writes.mask_changes import Ledger
from numapin_enforcer.plan.writes.ordered import cpu_write

MOST_WRITES: Final = 64
"""A cgroup that needs more, because of cgroups inside it, is not set again."""


def set_again(
    tree: Tree, wanted: Mapping[str, Desired], naming: CgroupNaming, path: str
) -> tuple[Write, ...]:
    """The writes after which each thread in the cgroup has the CPUs of the cgroup, and no others.

    The other set has one CPU less. Where a cgroup has only one, it has one more instead, which no
    container has exclusively. So after each single write no set is empty, parents contain their
    children, and no cgroup has an exclusive CPU of another container.

    Args:
        tree: the cgroups as read.
        wanted: what each of them must have.
        naming: how to read their paths.
        path: the cgroup with the threads.

    Returns:
        None if there is no such set, if a cgroup concerned has other CPUs than it must have, or if
        there were more than `MOST_WRITES`.
    """
    top = _top(tree, naming, path)
    family = [one for one in tree.cgroups if contains(top, one)]
    if any(tree.cgroups[one].effective_cpus != wanted[one].cpus for one in family):
        return ()
    asked = {one: found.cpus.mask for one, found in tree.cgroups.items()}
    effective = {one: found.effective_cpus.mask for one, found in tree.cgroups.items()}
    for labels in _detours(tree, wanted, family, path):
        ledger = Ledger(tree, asked, effective)
        moves = (*ledger.move({**effective, **labels}), *ledger.move(effective))
        changes = [change for move in moves for change in move]
        if len(changes) <= MOST_WRITES and all(one.path in labels for one in changes):
            return tuple(cpu_write(one, Step.SET_AGAIN, wanted) for one in changes)
    return ()


def _top(tree: Tree, naming: CgroupNaming, path: str) -> str:
    """The cgroup to write to: on v2 the container's, which the cgroups inside it follow."""
    while tree.version is Version.V2 and naming.parse(path).kind is Kind.NESTED:
        path = tree.parents[path]
    return path


def _detours(
    tree: Tree, wanted: Mapping[str, Desired], family: list[str], path: str
) -> Iterator[Mapping[str, int]]:
    """Other sets for the family, which differ for `path`, the best first."""
    masks = {one: tree.cgroups[one].effective_cpus.mask for one in family}
    for cpu in sorted(tree.cgroups[path].effective_cpus, reverse=True):
        less = {one: mask & ~(1 << cpu) for one, mask in masks.items()}
        if all(less.values()):
            yield less
    above = tree.cgroups[tree.parents[family[0]]].effective_cpus
    for cpu in above - exclusive_cpus(wanted.values()) - CpuSet.from_mask(masks[path]):
        grown = {one for one in family if contains(one, path)}
        yield {one: mask | 1 << cpu if one in grown else mask for one, mask in masks.items()}
