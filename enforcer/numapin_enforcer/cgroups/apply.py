"""Make ordered writes; if one fails, skip those that are unsafe without it. Does no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupError, CgroupReadOnlyError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import CgroupTree, contains, parent
from numapin_enforcer.cgroups.write import Inherited, Write


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that the kernel did not make, and why."""

    write: Write
    error: CgroupError


@dataclass(frozen=True, slots=True)
class Skipped:
    """A write that was not tried, because `cause` was not made."""

    write: Write
    cause: Write


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of each write: made, failed or skipped, or its cgroup has vanished."""

    made: tuple[Write, ...]
    vanished: tuple[Write, ...]
    failed: tuple[Failure, ...]
    skipped: tuple[Skipped, ...]

    @property
    def complete(self) -> bool:
        """Whether every write to a cgroup that still exists was made."""
        return not self.failed and not self.skipped

    @property
    def missing(self) -> tuple[Write, ...]:
        """The writes that failed or were skipped."""
        refused = tuple(one.write for one in self.failed)
        return refused + tuple(one.write for one in self.skipped)


def apply(writes: Iterable[Write], tree: CgroupTree) -> Outcome:
    """Make `writes` in their order.

    A vanished cgroup is normal. A failed write blocks only the writes that are unsafe without it.
    So does one that the kernel made and that left an exclusive container on its CPUs (v2, where
    the parent has none of its new ones by now, because others wrote there). The next pass plans
    again, from the tree as it is then.

    Args:
        writes: a whole `Plan`, or its `quick` and then those of its `moves` that are `unblocked`.
        tree: the cgroups to write to.
    """
    made: list[Write] = []
    vanished: list[Write] = []
    failed: list[Failure] = []
    skipped: list[Skipped] = []
    missing: list[Write] = []
    left = _Left(tree)
    for write in writes:
        missing += left.without_effect(write)
        cause = _cause(write, missing, failed)
        if cause is not None:
            missing.append(write)
            skipped.append(Skipped(write, cause))
            continue
        try:
            tree.write(write)
        except CgroupVanishedError:
            vanished.append(write)
        except CgroupError as error:
            missing.append(write)
            failed.append(Failure(write, error))
        else:
            made.append(write)
            left.note(write)
    return Outcome(tuple(made), tuple(vanished), tuple(failed), tuple(skipped))


def unblocked(writes: Iterable[Write], earlier: Outcome) -> tuple[Write, ...]:
    """The `writes` that are safe after `earlier`, the outcome of the first part of the same plan.

    A skipped write can make other writes unsafe as well.
    """
    safe: list[Write] = []
    missing = list(earlier.missing)
    for write in writes:
        blocked = _cause(write, missing, earlier.failed) is not None
        (missing if blocked else safe).append(write)
    return tuple(safe)


def _cause(write: Write, missing: Iterable[Write], failed: Sequence[Failure]) -> Write | None:
    """The write that was not made and without which `write` is unsafe or useless; None if safe."""
    cause = next((other for other in missing if _blocks(other, write)), None)
    if cause is None and failed and isinstance(failed[-1].error, CgroupReadOnlyError):
        return failed[-1].write
    return cause


class _Left:
    """The CPUs that exclusive containers must have left by the writes made so far.

    A container is read back before the first write that gives one of them to others.
    """

    def __init__(self, tree: CgroupTree) -> None:
        self._tree = tree
        self._left: dict[str, Write] = {}
        """By cgroup: as if one write had taken from it all that it must have left."""

    def note(self, made: Write) -> None:
        """Count what exclusive containers leave and gain by a write."""
        effects: tuple[Write | Inherited, ...] = (made, *made.inherited)
        for one in effects:
            if not one.exclusive_container:
                continue
            before = self._left.pop(one.path, None)
            mask = (one.leaves.mask | (before.leaves.mask if before else 0)) & ~one.gains.mask
            if mask:
                sets = CpuSet(), CpuSet.from_mask(mask)
                whole = Write(one.path, made.value, made.step, *sets, one.exclusive_container)
                self._left[one.path] = whole

    def without_effect(self, write: Write) -> list[Write]:
        """What did not take a container off a CPU that `write` gives to others, or its parent."""
        relied_on = [one for one in self._left.values() if _blocks(one, write)]
        for one in relied_on:
            del self._left[one.path]
        return [one for one in relied_on if self._still_has(one)]

    def _still_has(self, left: Write) -> bool:
        try:
            return bool(self._tree.read_effective_cpus(left.path).mask & left.leaves.mask)
        except CgroupVanishedError:
            return False
        except CgroupError:
            return True


def _blocks(missing: Write, write: Write) -> bool:
    """Whether `write` is unsafe because `missing` was not made."""
    if missing.setting is not write.setting:
        return False
    if contains(missing.path, write.path):
        return bool(missing.gains.mask & _asked(write))
    if contains(write.path, missing.path):
        return _blocks_parent(missing, write)
    if missing.exclusive_container and missing.exclusive_container == write.exclusive_container:
        return False
    kept_by_any = missing.leaves.mask & write.exclusive_gains
    kept_by_exclusive = missing.exclusive_leaves & write.gains.mask
    return bool(kept_by_any or kept_by_exclusive)


def _blocks_parent(missing: Write, write: Write) -> bool:
    """Whether a parent must stay as it is because a child could not be set.

    A child that asks for more than it has would gain with its parent (v2). A child whose whole set
    leaves its parent gets all that its parent has (v2), or the kernel refuses the parent's write
    (v1). So the parent must keep what the child did not leave, and at least one CPU or NUMA node
    that the child has, if it has any. An earlier write, which was skipped as well, may have been
    planned to take those from the parent.

    A write without gains and leaves only binds a child to what it has, so that it does not inherit
    more. If that failed, every gain of an ancestor is blocked, also of CPUs that the child could
    not inherit: that is safe, and the next pass tries again.
    """
    if not missing.gains and not missing.leaves:
        return bool(write.gains)
    if missing.unbound.mask & write.gains_of(parent(missing.path)):
        return True
    has = _asked(missing) & ~missing.gains.mask | missing.leaves.mask
    return bool(missing.leaves.mask & ~_asked(write) or (has and not has & _asked(write)))


def _asked(write: Write) -> int:
    return write.value.mask if isinstance(write.value, CpuSet | MemSet) else 0
