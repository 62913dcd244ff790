"""Which writes of a plan are left to the container runtime. Does no I/O."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from numapin_enforcer.cgroups.tree import Tree, contains
from numapin_enforcer.cgroups.write import Setting, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.writes.ordered import Held, Plan


def leave_growth(
    steps: Plan,
    by_runtime: AbstractSet[str],
    tree: Tree,
    wanted: Mapping[str, Desired],
    held: Held,
) -> Plan:
    """The plan without the writes to exclusive containers that keep all their CPUs and gain some.

    An update of a container that was sent before, by the kubelet for one, writes the set that the
    runtime had then. If ours were first, the container would lose its new CPUs again for a moment,
    and its threads the CPUs that they chose. A runtime makes the updates of a container one after
    the other, so no older one comes after its own write of the new set.

    Args:
        steps: the plan for `tree` and `wanted`; a grant comes after what frees its CPUs.
        by_runtime: cgroups of containers for which the runtime can be sent the new set.
        tree: the cgroups as read, or the part of them that is involved.
        wanted: what each cgroup must have.
        held: what exclusive containers had after the last pass: that is given back at once.
    """
    growing = {
        path
        for path in by_runtime & tree.cgroups.keys()
        if _grows(path, tree, wanted) and held.get(path) != wanted[path].cpus
    }
    left = {one.path for one in steps.writes if one.path in growing and _only_gains(one)}
    if not left:
        return steps
    kept = (one for one in steps.writes if not (_only_gains(one) and _is_in(one, left)))
    return replace(steps, writes=tuple(kept), left=frozenset(left))


def _grows(path: str, tree: Tree, wanted: Mapping[str, Desired]) -> bool:
    """Whether an exclusive container keeps all its CPUs."""
    has = tree.cgroups[path].effective_cpus
    return wanted[path].exclusive and bool(has) and has <= wanted[path].cpus


def _only_gains(write: Write) -> bool:
    return write.setting is Setting.CPUS and bool(write.gains) and not write.leaves


def _is_in(write: Write, paths: Collection[str]) -> bool:
    """Whether it is a write to one of these cgroups, or to a cgroup below one of them."""
    return any(contains(path, write.path) for path in paths)
