"""Which ways of the L3 and which bandwidth each class of CPUs has, and what to restore later.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.values import (
    BANDWIDTH,
    CACHES,
    Kernel,
    Key,
    Record,
    Saved,
    Values,
    Wanted,
    Ways,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to save, then to write.

    Attributes:
        record: to be on disk before any write.
        default: what values of the default group must be, those included that are restored.
        restored: the keys of those.
        ours: what our group must have; None if it must not exist.
        cpus: those of our group.
        problems: what is not as it was asked for.
    """

    record: Record
    default: Values
    restored: frozenset[Key] = frozenset()
    ours: Values | None = None
    cpus: CpuSet = CpuSet()
    problems: tuple[str, ...] = ()


def plan(kernel: Kernel, wanted: Wanted, record: Record) -> Plan:
    """Share out what is asked for, from what the default group has, and restore the rest.

    Groups of others keep their values and their CPUs. A mask of the default group that others have
    set off the ways of exclusive CPUs is what they want, and stays; every other change is undone.
    """
    made = _Sharing(kernel, wanted, record)
    values = {key: made.saved(key, value) for key, value in made.default.items()}
    left = {key: one for key, one in record.values.items() if key not in values}
    restored = {
        key: one.found for key, one in left.items() if kernel.default.get(key) in one.written
    }
    after = {**kernel.default, **made.default, **restored}
    ours = made.ours(after) if wanted.cpus and made.is_asked else None
    cpus = made.cpus if ours is not None else CpuSet()
    return Plan(
        Record(left | values, made.ways),
        made.default | restored,
        frozenset(left),
        ours,
        cpus,
        tuple(made.problems()),
    )


class _Sharing:
    """The shares of each cache that exclusive CPUs use."""

    def __init__(self, kernel: Kernel, wanted: Wanted, record: Record) -> None:
        self._kernel, self._wanted, self._record = kernel, wanted, record
        known = {cache for _, cache in kernel.default}
        self._caches = wanted.caches & known if wanted.caches <= known else frozenset(known)
        self._caches = self._caches if wanted.cpus else frozenset()
        steps, percent = kernel.steps, wanted.others_bandwidth
        self._limit = steps.at_least(percent) if steps is not None and percent < 100 else None
        self._undivided: list[int] = []
        self.ways = self._divide()
        self.cpus = wanted.cpus - CpuSet.union(one.cpus for one in kernel.others)
        self.default = {**self._masks(), **self._limits()}

    @property
    def is_asked(self) -> bool:
        asks_bandwidth = min(self._wanted.bandwidth, self._wanted.others_bandwidth) < 100
        return bool(self.ways) or (asks_bandwidth and self._kernel.steps is not None)

    def saved(self, key: Key, value: int) -> Saved:
        """What is on disk of a value before it is written."""
        now, found = self._kernel.default[key], self._found(key)
        known = self._record.values.get(key)
        kept = known.written & {now} if known is not None else frozenset()
        return Saved(found, (kept | {value}) - {found})

    def ours(self, default: Values) -> dict[Key, int]:
        """What exclusive CPUs have: ways of their own, or those of the default group."""
        found: dict[Key, int] = {}
        for key in self._keys(CACHES):
            found[key] = self.ways.get(key[1], default[key])
        if self._kernel.steps is not None:
            percent = self._kernel.steps.at_least(self._wanted.bandwidth)
            found |= dict.fromkeys(self._keys((BANDWIDTH,)), percent)
        return found

    def problems(self) -> Iterator[str]:
        """What is not as it was asked for."""
        kernel, wanted = self._kernel, self._wanted
        if not wanted.cpus:
            return
        if wanted.l3_percent and kernel.ways is None:
            yield "the L3 cannot be divided here: resctrl has no info/L3"
        if min(wanted.bandwidth, wanted.others_bandwidth) < 100 and kernel.steps is None:
            yield "memory bandwidth cannot be limited in percent here: see info/MB of resctrl"
        for cache in self._undivided:
            yield f"L3 {cache}: the default group has too few ways to give {wanted.l3_percent} %"
        if not self.is_asked:
            return
        for one in kernel.others:
            if taken := one.cpus & wanted.cpus:
                yield f"CPUs {taken} are in the resctrl group {one.name}, and stay there"
            for cache, mask in self.ways.items():
                if mask & _union(one.values, cache):
                    yield f"the resctrl group {one.name} fills ways of exclusive CPUs in L3 {cache}"

    def _keys(self, lines: Sequence[str]) -> list[Key]:
        return [key for key in self._kernel.default if key[0] in lines and key[1] in self._caches]

    def _found(self, key: Key) -> int:
        """What others want a value of the default group to be."""
        now, known = self._kernel.default[key], self._record.values.get(key)
        if known is None or not known.written:
            return now
        if key[0] == BANDWIDTH:
            is_undone = self._limit is not None and now > self._limit
        else:
            is_undone = bool(now & self._record.ways.get(key[1], 0))
        return known.found if is_undone or now in known.written else now

    def _divide(self) -> dict[int, int]:
        """The ways of exclusive CPUs, by cache: those that they have, or that others use least."""
        rules, percent = self._kernel.ways, self._wanted.l3_percent
        found: dict[int, int] = {}
        if rules is None or not percent:
            return found
        for cache in sorted({cache for _, cache in self._keys(CACHES)}):
            lines = [self._found(key) for key in self._keys(CACHES) if key[1] == cache]
            busy = 0
            for one in self._kernel.others:
                busy |= _union(one.values, cache)
            own, count = self._record.ways.get(cache, 0), rules.count(percent)
            fitting = _fitting(lines, own, count, rules)
            if not fitting:
                self._undivided.append(cache)
                continue
            found[cache] = min(
                fitting,
                key=lambda mask: (
                    mask != own,
                    (mask & busy).bit_count(),
                    (mask & rules.hardware).bit_count(),
                ),
            )
        return found

    def _masks(self) -> dict[Key, int]:
        """The masks of the default group: all ways that others want but those of exclusive CPUs."""
        keys = [key for key in self._keys(CACHES) if key[1] in self.ways]
        return {key: self._found(key) & ~self.ways[key[1]] for key in keys}

    def _limits(self) -> dict[Key, int]:
        """The bandwidth of the default group; never more than others want."""
        limit = self._limit
        if limit is None:
            return {}
        return {key: min(self._found(key), limit) for key in self._keys((BANDWIDTH,))}


def _fitting(lines: Sequence[int], own: int, count: int, rules: Ways) -> list[int]:
    """The masks of so many ways at either end that leave each line a mask the kernel takes."""
    base = own
    for one in lines:
        base |= one
    bits = [1 << at for at in range(base.bit_length()) if base >> at & 1]
    masks = (own, sum(bits[:count]), sum(bits[-count:]))
    return [
        one
        for one in masks
        if one.bit_count() == count
        and rules.takes(one)
        and all(rules.takes(line & ~one) for line in lines)
    ]


def _union(values: Values, cache: int) -> int:
    found = 0
    for (line, id_), mask in values.items():
        if line in CACHES and id_ == cache:
            found |= mask
    return found


def answered(record: Record, answers: Values, gone: Iterable[Key]) -> Record:
    """What is on disk once the kernel has said what values are."""
    values = {key: one for key, one in record.values.items() if key not in set(gone)}
    for key, got in answers.items():
        if key in values:
            values[key] = replace(values[key], written=frozenset({got} - {values[key].found}))
    return replace(record, values=values)
