"""Every state that the kernel permits on a tiny node, and the first pass of an enforcer on it.

A cgroup of the class BestEffort always has a CPU: the enforcer's own pod, or another one.
"""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import replace

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.actions import (
    Action,
    End,
    Enter,
    History,
    Hold,
    Make,
    Name,
    Overwrite,
    Pass,
    Refuse,
)
from numapin_campaigns.histories.worlds.small_worlds import World, is_sorted, places

SHAPES: Mapping[str, World] = {
    "one": World(("g1/a1", "b3/c4"), ("g1/a",)),
    "two containers": World(("g1/a1", "g1/b2", "b3/c4"), ("g1/a", "g1/b")),
    "two pods": World(("g1/a1", "g2/b2"), ("g1/a", "g2/b")),
    "nested": World(("g1/a1", "g1/a1/n", "b3/c4"), ("g1/a",)),
}

Masks = Mapping[str, int]
"""What each cgroup asks for; 0 is nothing, and for `besteffort` that there is no such cgroup."""


def states(world: World, version: int, cpus: int) -> Iterator[Masks]:
    """Every assignment of sets to the cgroups of a world; on v1 each child is in its parent."""
    paths = [one for one in world.all if one != "besteffort"]
    yield from _states(paths, version, (1 << cpus) - 1, {})


def _states(paths: list[str], version: int, full: int, found: Masks) -> Iterator[Masks]:
    if not paths:
        for mask in range(1, full + 1):
            yield {**found, "besteffort": mask}
        return
    path, *rest = paths
    limit = found.get(_above(path), full) if version == 1 else full
    for mask in range(full + 1):
        if not mask & ~limit:
            yield from _states(rest, version, full, {**found, path: mask})


def _above(short: str) -> str:
    """The cgroup that contains another, but for kubepods."""
    parent = short.rpartition("/")[0]
    return parent or ("burstable" if short[1:].isdigit() and short[0] == "b" else "")


def histories(world: World, version: int, cpus: int, masks: Masks) -> Iterator[History]:
    """Each spec, up to a permutation of CPUs; each write of the first pass failing, or none."""
    setup = tuple(_setup(world, version, masks))
    for labels, spec in world.specs(cpus):
        columns = ((one, *_bits(masks, cpu)) for cpu, one in enumerate(labels))
        if not is_sorted(columns):
            continue
        start = History(version, "cgroupfs", cpus, 1, (*setup, spec, Hold()))
        yield replace(start, actions=(*start.actions, Pass()))
        for place in places(start, Pass()):
            failing = Pass(faults=(Refuse(*place, errno.EBUSY),))
            yield replace(start, actions=(*start.actions, failing))


def _bits(masks: Masks, cpu: int) -> Iterator[int]:
    """Whether each cgroup asks for the CPU."""
    return (mask >> cpu & 1 for mask in masks.values())


def _setup(world: World, version: int, masks: Masks) -> Iterator[Action]:
    """On v1 a cgroup is empty until its sets are written, parents first."""
    yield End("burstable")
    if not masks["besteffort"]:
        yield End("besteffort")
    for short in world.all:
        if short != "besteffort":
            yield Make(short, bare=True)
    for short in masks:
        yield Overwrite(short, str(CpuSet.from_mask(masks[short])), "0" if version == 1 else "")
    for short in world.cgroups:
        if short.count("/") == 1:
            yield Name(short)
    yield from map(Enter, world.leaves)
