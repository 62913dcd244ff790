"""One look at resctrl: what must be saved is saved, then groups are written and read back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.files import RefusedError, Resctrl, by_line, schemata
from numapin_enforcer.resctrl.plan import Plan, answered, plan
from numapin_enforcer.resctrl.saved import SavedRecord
from numapin_enforcer.resctrl.values import GROUP, NOTHING, Group, Kernel, Key, Values, Wanted

DEFAULT: Final = ""
"""The folder of the default group is the mount itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a look has led to.

    Attributes:
        cpus: the exclusive CPUs in our group, by the kernel's answer.
        schemata: the values of our group.
        problems: what is not as it was asked for.
        is_refused: whether the kernel has refused a write.
        written: how many lines were written.
        foreign: how many changes of others were undone.
    """

    cpus: CpuSet = CpuSet()
    schemata: str = ""
    problems: tuple[str, ...] = ()
    is_refused: bool = False
    written: int = 0
    foreign: int = 0


@dataclass(eq=False, slots=True)
class Keeper:
    """Belongs to one thread at a time."""

    files: Resctrl
    saved: SavedRecord
    _last: Kernel | None = field(default=None, init=False)
    """What resctrl said at the end of the last look; None before the first."""
    _got: dict[tuple[str, Key, int], int] = field(default_factory=dict, init=False)
    """What the hardware has made of a value that was written: it may round."""
    _problems: list[str] = field(default_factory=list, init=False)
    _answers: Values = field(default_factory=dict, init=False)
    """What values of the default group are after they were written."""
    _written: int = field(default=0, init=False)

    def look(self, wanted: Wanted) -> Outcome:
        """Share out what is wanted; without CPUs, restore everything and forget it.

        Raises:
            ResctrlError: resctrl cannot be read, or not be written at all.
            OSError: what was found could not be saved; then nothing was written.
        """
        self._problems, self._answers, self._written = [], {}, 0
        before = self.files.read()
        planned = plan(before, wanted, self.saved.record)
        foreign = self._undone(before, planned)
        self.saved.save(planned.record)
        if not self._has_group(before, planned):
            planned = plan(before, NOTHING, self.saved.record)
        if planned.ours is None:
            self._remove()
        refused = self._write(DEFAULT, before.default, planned.default)
        if planned.ours is not None:
            self._place(before.ours, planned.cpus)
        after = self._last = self.files.read()
        self.saved.save(answered(planned.record, self._answers, planned.restored - refused))
        if planned.ours is None and after.ours is None and not self.saved.record.values:
            self.saved.drop()
        return self._outcome(after, wanted, planned, foreign)

    def _has_group(self, before: Kernel, planned: Plan) -> bool:
        """Make our group as planned; False if the kernel does not, so that nothing is divided."""
        if planned.ours is None:
            return True
        if before.ours is None and not self._try(self.files.make):
            return False
        had = before.ours.values if before.ours is not None else {}
        return not self._write(GROUP, had, planned.ours)

    def _remove(self) -> None:
        """Remove our group, if there is one: its CPUs fall to the default group."""
        if self.files.read().ours is not None:
            self._try(self.files.remove)

    def _place(self, ours: Group | None, cpus: CpuSet) -> None:
        """Put the CPUs into our group."""
        if cpus != (ours.cpus if ours is not None else CpuSet()):
            self._try(partial(self.files.write_cpus, cpus))

    def _try(self, write: Callable[[], None]) -> bool:
        """Make a write; False if the kernel refuses it."""
        try:
            write()
        except RefusedError as error:
            self._problems.append(str(error))
            return False
        self._written += 1
        return True

    def _write(self, group: str, has: Values, wanted: Values) -> set[Key]:
        """Write the lines of a group that differ; returns the keys that were refused."""
        due = {
            key: value
            for key, value in wanted.items()
            if has.get(key) not in (value, self._got.get((group, key, value), value))
        }
        refused: set[Key] = set()
        for line, values in by_line(due).items():
            if not self._try(partial(self.files.write_values, group, line, values)):
                refused |= values.keys()
        if due:
            self._learn(group, {key: due[key] for key in due if key not in refused})
        return refused

    def _learn(self, group: str, written: Values) -> None:
        kernel = self.files.read()
        ours = kernel.ours.values if kernel.ours is not None else {}
        has = ours if group == GROUP else kernel.default
        self._got |= {(group, key, value): has.get(key, value) for key, value in written.items()}
        if group == DEFAULT:
            self._answers = {key: has[key] for key in written if key in has}

    def _undone(self, before: Kernel, planned: Plan) -> int:
        """How many changes of others since the last look this one undoes."""
        last = self._last
        if last is None or last.ours is None or planned.ours is None:
            return 0
        count = sum(_changed(last.default, before.default, planned.default))
        if before.ours is None:
            return count + 1
        lost = (last.ours.cpus & planned.cpus) - before.ours.cpus
        return count + sum(_changed(last.ours.values, before.ours.values, planned.ours), bool(lost))

    def _outcome(self, after: Kernel, wanted: Wanted, planned: Plan, foreign: int) -> Outcome:
        problems = (*plan(after, wanted, self.saved.record).problems, *self._problems)
        ours, cpus, shown = after.ours, CpuSet(), ""
        if ours is not None and planned.ours is not None:
            cpus = ours.cpus & wanted.cpus
            shown = schemata({key: ours.values[key] for key in planned.ours if key in ours.values})
        return Outcome(cpus, shown, problems, bool(self._problems), self._written, foreign)


def _changed(last: Values, now: Values, wanted: Values) -> Iterable[bool]:
    """For each value that must be something: whether others have changed it to something else."""
    for key, value in wanted.items():
        has = now.get(key)
        yield key in last and has not in (None, value, last[key])
