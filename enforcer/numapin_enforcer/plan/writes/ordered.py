"""Desired and observed cpusets become ordered writes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.tree import Tree, Version, contains
from numapin_enforcer.cgroups.write import Inherited, Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import exclusive_cpus
from numapin_enforcer.plan.writes.mask_changes import Change, Effect, Ledger


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes in a safe order; none if the kernel has every desired set.

    `left` are cgroups whose gain of CPUs is left to the container runtime; see `leave_growth`.
    """

    writes: tuple[Write, ...]
    left: frozenset[str] = frozenset()

    @property
    def quick(self) -> tuple[Write, ...]:
        """The writes that take microseconds: made first, at once."""
        return tuple(write for write in self.writes if not write.may_block)

    @property
    def moves(self) -> tuple[Write, ...]:
        """The writes that move memory pages and can take seconds: made last, by a worker."""
        return tuple(write for write in self.writes if write.may_block)


Held = Mapping[str, CpuSet]
"""Cgroups of exclusive containers, with the CPUs that were theirs alone after the last pass."""

NOTHING_HELD: Final[Held] = MappingProxyType({})


def plan(tree: Tree, wanted: Mapping[str, Desired], held: Held = NOTHING_HELD) -> Plan:
    """The writes that take every cgroup of `tree` to its desired set.

    After each single write, and also if any of them fails: a container keeps its exclusive CPUs to
    itself until it has been moved off them; no container is granted exclusive CPUs before all other
    cgroups have left them; no set is empty; parents contain their children.

    Args:
        tree: the cgroups as read, or the part of them that is `involved`.
        wanted: an entry for each cgroup as read, parents containing their children.
        held: CPUs that still count as exclusive, although others may have entered them.
    """
    gaining, leaving = _plan_mems(tree, wanted)
    return Plan((*gaining, *_plan_cpus(tree, wanted, held), *leaving))


def _plan_cpus(tree: Tree, wanted: Mapping[str, Desired], held: Held) -> list[Write]:
    """Narrow, grant, widen: each a move from one labelling of the tree to the next."""
    asked = {path: one.cpus.mask for path, one in tree.cgroups.items()}
    effective = {path: one.effective_cpus.mask for path, one in tree.cgroups.items()}
    ledger = Ledger(tree, asked, effective)
    stages = _Stages(tree, wanted, ledger.effective, held)
    writes: list[Write] = []
    for step, stage in stages.ordered():
        gaining, leaving = ledger.move(stages.labels(stage))
        writes += (cpu_write(change, step, wanted) for change in (*gaining, *leaving))
    return writes


def cpu_write(change: Change, step: Step, wanted: Mapping[str, Desired]) -> Write:
    """One change of CPUs as a write, with what it means for others."""
    return Write(
        change.path,
        CpuSet.from_mask(change.asked),
        step,
        CpuSet.from_mask(change.gains),
        CpuSet.from_mask(change.leaves),
        wanted[change.path].exclusive_container,
        CpuSet.from_mask(change.unbound),
        tuple(_inherited(change.inherited, wanted)),
    )


def _inherited(effects: Iterable[Effect], wanted: Mapping[str, Desired]) -> Iterator[Inherited]:
    """The effects that can block other writes: what shared cgroups only lose blocks none."""
    for path, before, after in effects:
        gains, exclusive_container = after & ~before, wanted[path].exclusive_container
        if gains or exclusive_container:
            sets = CpuSet.from_mask(gains), CpuSet.from_mask(before & ~after)
            yield Inherited(path, *sets, exclusive_container)


Stage = Callable[[str], int]
"""What a cgroup has after one stage, its children not counted."""


class _Stages:
    """The sets of the whole tree after each stage; each starts from the sets before it."""

    def __init__(
        self,
        tree: Tree,
        wanted: Mapping[str, Desired],
        effective: Mapping[str, int],
        held: Held,
    ) -> None:
        self._tree, self._effective, self._held = tree, effective, held
        self._paths = tuple(tree.cgroups)
        self._exclusive = {path: wanted[path].exclusive_container for path in self._paths}
        self._exclusive_cpus = exclusive_cpus(wanted.values()).mask
        self._wanted = {path: wanted[path].cpus.mask for path in self._paths}
        if withheld := _withheld(tree, wanted):
            for path, mask in self._wanted.items():
                has = effective[path]
                self._wanted[path] = mask & ~withheld or has & ~self._exclusive_cpus or has
        self._interim: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        """What each exclusive container has alone, or held."""

    def ordered(self) -> Iterator[tuple[Step, Stage]]:
        """Every stage in its order, without those that no cgroup needs."""
        yield Step.NARROW, self._narrow
        without_kept = [path for path in self._paths if not self._kept(path)]
        moving = [one for one in without_kept if self._exclusive[one] and self._effective[one]]
        if moving:
            self._taken = self._alone()
            self._interim = self._interim_sets(moving)
            yield Step.NARROW, self._move_aside
            yield Step.NARROW, self._narrow
        if without_kept:
            yield Step.NARROW, self._move_shared
        yield Step.GRANT, self._grant
        yield Step.WIDEN, self._wanted.__getitem__

    def labels(self, stage: Stage) -> dict[str, int]:
        """What each cgroup has after `stage`: its own, and what its children have."""
        root, parents = self._tree.root, self._tree.parents
        labels = dict.fromkeys(self._paths, 0)
        for path in reversed(self._paths):
            label = labels[path]
            labels[path] = label = label | (stage(path) or (0 if label else self._effective[path]))
            if path != root:
                labels[parents[path]] |= label
        labels[root] |= self._effective[root] | self._wanted[root]
        return labels

    def _kept(self, path: str) -> int:
        return self._effective[path] & self._wanted[path]

    def _narrow(self, path: str) -> int:
        """The CPUs that it has and keeps; if none, the interim CPUs of an exclusive container."""
        return self._interim.get(path) or self._kept(path)

    def _move_aside(self, path: str) -> int:
        """The next two stages, for those that gain no CPU which another container still has."""
        container = self._exclusive[path]
        pool = 0 if container else self._wanted[path] & ~self._exclusive_cpus
        choice = self._narrow(path) or pool
        gains = choice & ~self._effective[path]
        others = (cpus for one, cpus in self._taken.items() if one != container)
        return 0 if gains and gains & reduce(or_, others, 0) else choice

    def _move_shared(self, path: str) -> int:
        """A shared cgroup that keeps no CPU gets its set, without CPUs that become exclusive.

        A cgroup that has nothing yet and becomes exclusive waits for its grant.
        """
        if self._exclusive[path]:
            return self._narrow(path)
        wanted = self._wanted[path]
        return self._kept(path) or wanted & ~self._exclusive_cpus or wanted

    def _grant(self, path: str) -> int:
        return self._wanted[path] if self._exclusive[path] else self._kept(path)

    def _interim_sets(self, moving: Iterable[str]) -> dict[str, int]:
        """Interim CPUs for exclusive containers that keep none of theirs, until others have left.

        CPUs that no container has exclusively: the shared pool, else their future ones, else those
        of the pool that it has alone by chance, else any: another one may get that back meanwhile.
        If there is none, then CPUs that another has alone by chance. What was never held is alone
        by chance; nothing is, if nothing is known of what was held.
        """
        interim: dict[str, int] = {}
        held = reduce(or_, self._still_held().values(), 0)
        taken = held | reduce(or_, self._taken.values(), 0)
        for path in moving:
            parent, container = self._tree.parents[path], self._exclusive[path]
            wanted, root = self._wanted[path], self._effective[self._tree.root]
            if self._exclusive[parent] == container:
                room = interim.get(parent) or self._kept(parent)
                interim[path] = self._effective[path] & room or wanted & room or room
                continue
            others = taken & ~self._taken.get(container, 0)
            pool, by_chance = self._wanted[parent] & ~self._exclusive_cpus, ~held if held else 0
            choices = (
                *(pool & ~taken, wanted & ~others, pool & ~others & by_chance),
                *(root & ~taken, root & by_chance, pool, wanted),
            )
            interim[path] = next(filter(None, choices))
        return interim

    def _alone(self) -> dict[str, int]:
        """The CPUs of each exclusive container that only its cgroups and their ancestors have.

        CPUs that it held count as well, so that no other is parked beside an intruder.
        """
        still_held = self._still_held()
        families: dict[str, set[str]] = {}
        for path, container in self._exclusive.items():
            if container:
                families.setdefault(container, set()).add(path)
        alone: dict[str, int] = {}
        for container, family in families.items():
            mine = 0
            for path in family:
                mine |= self._effective[path]
            for path in self._paths:
                if path != self._tree.root and not any(contains(path, one) for one in family):
                    mine &= ~self._effective[path]
            for path in family & still_held.keys():
                mine |= still_held[path]
            alone[container] = mine
        return alone

    def _still_held(self) -> dict[str, int]:
        return {
            path: self._effective[path] & cpus.mask
            for path, cpus in self._held.items()
            if path in self._effective
        }


def _withheld(tree: Tree, wanted: Mapping[str, Desired]) -> int:
    """The CPUs that cgroups must have and kubepods has not (v2, where kubepods is not written).

    To ask for these alone gives a cgroup all that its parent has, exclusive CPUs included.
    """
    if tree.version is Version.V1:
        return 0
    want = reduce(or_, (wanted[path].cpus.mask for path in tree.children[tree.root]), 0)
    return want & ~tree.cgroups[tree.root].effective_cpus.mask


def _plan_mems(tree: Tree, wanted: Mapping[str, Desired]) -> tuple[list[Write], list[Write]]:
    """The writes that only allow more NUMA nodes, and those that take some away."""
    asked = {path: one.mems.mask for path, one in tree.cgroups.items()}
    effective = {path: one.effective_mems.mask for path, one in tree.cgroups.items()}
    target = {path: wanted[path].mems.mask for path in tree.cgroups}
    limit = effective[tree.root]
    if tree.version is Version.V2:  # kubepods is not written: a part of it is all there is
        target = {path: mems & limit or effective[path] for path, mems in target.items()}
    target[tree.root] |= limit
    for mask in asked.values():
        limit |= mask  # what a cgroup asks for and does not get is not ours to take back
    gaining, leaving = Ledger(tree, asked, effective, limit).move(target)
    quick = [_mem_write(one, Step.PREPARE) for one in gaining]
    slow: list[Write] = []
    for one in leaving:
        moves = one.leaves and tree.version is Version.V1 and _assigned_mems(wanted[one.path])
        slow += [_migrates(one.path, True)] if moves else []
        slow.append(_mem_write(one, Step.MOVE_MEMORY))
        slow += [_migrates(one.path, False)] if moves else []
    return quick, slow


def _migrates(path: str, value: bool) -> Write:
    """Whether a change of a v1 cgroup's NUMA nodes moves its pages, or those of who enters it.

    False is the kernel's default. It is back after our own write: others did not ask for moves.
    """
    return Write(path, value, Step.MOVE_MEMORY, may_block=True)


def _mem_write(change: Change, step: Step) -> Write:
    return Write(
        change.path,
        MemSet.from_mask(change.asked),
        step,
        MemSet.from_mask(change.gains),
        MemSet.from_mask(change.leaves),
        may_block=bool(change.leaves),
    )


def _assigned_mems(wanted: Desired) -> bool:
    """Whether the spec assigns NUMA nodes: then v1 moves memory that is on others, as v2 does."""
    return wanted.container is not None and bool(wanted.container.mems)
