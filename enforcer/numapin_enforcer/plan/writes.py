"""Pure: desired and observed cpusets become ordered writes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.tree import Inherited, Step, Tree, Version, Write, contains
from numapin_enforcer.plan.desired import Desired, owned_cpus
from numapin_enforcer.plan.transition import Change, Effect, Ledger


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes in the order in which they are safe; none when the kernel already has it all."""

    writes: tuple[Write, ...]

    @property
    def quick(self) -> tuple[Write, ...]:
        """Those that take microseconds: made first, at once."""
        return tuple(write for write in self.writes if not write.may_block)

    @property
    def moves(self) -> tuple[Write, ...]:
        """Those that move memory pages and can take seconds: made last, by a worker."""
        return tuple(write for write in self.writes if write.may_block)


def plan(tree: Tree, wanted: Mapping[str, Desired]) -> Plan:
    """How to take every cgroup of `tree` to what is wanted of it.

    After each single write, and also if any of them fails: whoever has CPUs alone and is to own
    CPUs shares those with nobody until he left them; nobody is granted CPUs before everyone else
    left them; no set is empty; parents contain their children.

    Args:
        tree: what the kernel has.
        wanted: an entry for each cgroup of `tree`, parents containing their children.
    """
    gaining, leaving = _plan_mems(tree, wanted)
    return Plan((*gaining, *_plan_cpus(tree, wanted), *leaving))


def _plan_cpus(tree: Tree, wanted: Mapping[str, Desired]) -> list[Write]:
    """Narrow, grant, widen: each a move from one labelling of the tree to the next."""
    asked = {path: one.cpus.mask for path, one in tree.cgroups.items()}
    effective = {path: one.effective_cpus.mask for path, one in tree.cgroups.items()}
    ledger = Ledger(tree, asked, effective)
    stages = _Stages(tree, wanted, ledger.effective)
    writes: list[Write] = []
    for step, stage in stages.ordered():
        gaining, leaving = ledger.move(stages.labels(stage))
        writes += (_cpu_write(change, step, wanted) for change in (*gaining, *leaving))
    return writes


def _cpu_write(change: Change, step: Step, wanted: Mapping[str, Desired]) -> Write:
    return Write(
        change.path,
        CpuSet.from_mask(change.asked),
        step,
        CpuSet.from_mask(change.gains),
        CpuSet.from_mask(change.leaves),
        wanted[change.path].owner,
        CpuSet.from_mask(change.unbound),
        tuple(_inherited(effect, wanted[effect.path].owner) for effect in change.inherited),
    )


def _inherited(effect: Effect, owner: str) -> Inherited:
    gains = CpuSet.from_mask(effect.after & ~effect.before)
    return Inherited(effect.path, gains, CpuSet.from_mask(effect.before & ~effect.after), owner)


Stage = Callable[[str], int]
"""What a cgroup has after one stage, its children not counted."""


class _Stages:
    """The labellings that the CPUs go through; each looks at what is effective before it."""

    def __init__(
        self, tree: Tree, wanted: Mapping[str, Desired], effective: Mapping[str, int]
    ) -> None:
        self._tree, self._effective = tree, effective
        self._paths = tuple(tree.cgroups)
        self._wanted = {path: wanted[path].cpus.mask for path in self._paths}
        self._owner = {path: wanted[path].owner for path in self._paths}
        self._owned = owned_cpus(wanted[path] for path in self._paths).mask
        self._parked: dict[str, int] = {}

    def ordered(self) -> Iterator[tuple[Step, Stage]]:
        """Every stage in its order, those left out that nobody needs."""
        yield Step.NARROW, self._keep
        homeless = [path for path in self._paths if not self._kept(path)]
        self._parked = self._park([path for path in homeless if self._owner[path]])
        if self._parked:
            yield Step.NARROW, self._keep
        if homeless:
            yield Step.NARROW, self._settle
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

    def _keep(self, path: str) -> int:
        """What it has and may keep; a future owner that keeps nothing goes where it is parked."""
        return self._parked.get(path) or self._kept(path)

    def _settle(self, path: str) -> int:
        """Whoever keeps nothing and will own nothing goes to its set, but for what others will own.

        Those that have nothing yet and will own something wait for their grant.
        """
        if self._owner[path]:
            return self._keep(path)
        wanted = self._wanted[path]
        return self._kept(path) or wanted & ~self._owned or wanted

    def _grant(self, path: str) -> int:
        return self._wanted[path] if self._owner[path] else self._kept(path)

    def _park(self, homeless: list[str]) -> dict[str, int]:
        """Where future owners go that keep nothing of what they have, until others made room.

        On CPUs that nobody has alone: the shared pool, else those they will own, else any.
        """
        places: dict[str, int] = {}
        moving = [path for path in homeless if self._effective[path]]
        alone = self._alone() if moving else {}
        taken = 0
        for mask in alone.values():
            taken |= mask
        for path in moving:
            above, owner = self._tree.parents[path], self._owner[path]
            wanted, root = self._wanted[path], self._effective[self._tree.root]
            if self._owner[above] == owner:
                room = places.get(above) or self._kept(above)
                places[path] = self._effective[path] & room or wanted & room or room
                continue
            others = taken & ~alone.get(owner, 0)
            pool = self._wanted[above] & ~self._owned
            choices = (pool & ~taken, wanted & ~others, root & ~taken, pool, wanted)
            places[path] = next(filter(None, choices))
        return places

    def _alone(self) -> dict[str, int]:
        """What each future owner has now that no cgroup has but its own and those around them."""
        families: dict[str, set[str]] = {}
        for path, owner in self._owner.items():
            if owner:
                families.setdefault(owner, set()).add(path)
        alone: dict[str, int] = {}
        for owner, family in families.items():
            mine = 0
            for path in family:
                mine |= self._effective[path]
            for path in self._paths:
                if path != self._tree.root and not any(contains(path, one) for one in family):
                    mine &= ~self._effective[path]
            alone[owner] = mine
        return alone


def _plan_mems(tree: Tree, wanted: Mapping[str, Desired]) -> tuple[list[Write], list[Write]]:
    """The writes that only allow more NUMA nodes, and those that take some away."""
    asked = {path: one.mems.mask for path, one in tree.cgroups.items()}
    effective = {path: one.effective_mems.mask for path, one in tree.cgroups.items()}
    target = {path: wanted[path].mems.mask for path in tree.cgroups}
    target[tree.root] |= effective[tree.root]
    gaining, leaving = Ledger(tree, asked, effective).move(target)
    quick = [_mem_write(one, Step.PREPARE) for one in gaining]
    slow: list[Write] = []
    for one in leaving:
        if one.leaves and tree.version is Version.V1 and _assigned_mems(wanted[one.path]):
            slow.append(Write(one.path, value=True, step=Step.MOVE_MEMORY, may_block=True))
        slow.append(_mem_write(one, Step.MOVE_MEMORY))
    return quick, slow


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
    """Whether the spec says where its memory is: then v1, too, moves what is elsewhere."""
    return wanted.container is not None and bool(wanted.container.mems)
