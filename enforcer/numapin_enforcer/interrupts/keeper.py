"""One look at all masks: what must be saved is saved, then they are written and read back."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import MaskFiles, MaskGoneError, MaskRefusedError
from numapin_enforcer.interrupts.plan import Change, Limits, Mask, plan
from numapin_enforcer.interrupts.saved_masks import SavedMasks

RETRY_SECONDS: Final = 60.0
"""How soon the same mask is written again that the kernel has refused."""

OWNERS_EACH: Final = 6
"""In one of so many looks it is read whose interrupts they are; before a write it always is."""


@dataclass(frozen=True, slots=True)
class Staying:
    """An interrupt that may still occur on exclusive CPUs, or a mask that still has them.

    Attributes:
        mask: which one.
        cpus: these exclusive CPUs.
        why: for people.
        is_refused: whether the kernel does not move it; else it moves soon.
        serves_them: whether it is of a queue that serves exclusive CPUs alone: nothing but their
            own I/O raises it. Source: Linux block/blk-mq-pci.c, `blk_mq_pci_map_queues`.
    """

    mask: Mask
    cpus: CpuSet
    why: str
    serves_them: bool = False
    is_refused: bool = False

    def __str__(self) -> str:
        return f"{self.mask} on {self.cpus}: {self.why}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a look has led to.

    Attributes:
        kept_off: the exclusive CPUs on which no interrupt may occur, by the kernel's answer, but
            of queues that serve them alone.
        staying: what may still use others.
        written: how many masks were written.
        foreign: masks that others had set onto exclusive CPUs since the look before.
    """

    kept_off: CpuSet = CpuSet()
    staying: tuple[Staying, ...] = ()
    written: int = 0
    foreign: tuple[Mask, ...] = ()


@dataclass(frozen=True, slots=True)
class _Tried:
    """A write that has not led to what was asked for, and is not repeated at once."""

    asked: CpuSet
    got: CpuSet
    at_seconds: float
    why: str

    def forbids(self, change: Change, now_seconds: float) -> bool:
        """Whether a write would only repeat this one."""
        is_same = (self.asked, self.got) == (change.cpus, change.mask.cpus)
        return is_same and now_seconds < self.at_seconds + RETRY_SECONDS


@dataclass(eq=False, slots=True)
class Keeper:
    """Belongs to one thread at a time."""

    files: MaskFiles
    saved: SavedMasks
    _last: Mapping[str, CpuSet] | None = field(default=None, init=False)
    """What each mask was at the end of the last look; None before the first."""
    _tried: dict[str, _Tried] = field(default_factory=dict, init=False)
    _unsettled: frozenset[str] = field(default=frozenset(), init=False)
    """Interrupts that occurred on exclusive CPUs at the last look."""
    _looks: int = field(default=0, init=False)

    def look(self, limits: Limits, now_seconds: float) -> Outcome:
        """Keep all masks within limits; without exclusive CPUs, restore them and forget all.

        Raises:
            InterruptsError: they cannot be read, or none can be written.
            OSError: what was found could not be saved; then nothing was written.
        """
        self._looks += 1
        again = not limits.exclusive or self._looks % OWNERS_EACH == 1
        masks = self.files.read(again=again)
        planned = plan(masks, self.saved.masks, limits, self._last or {})
        self.saved.save(planned.saved)
        made = self._write(planned.changes, now_seconds)
        self._save_answers(made)
        due = None if self._last is None else {*made, *self._tried, *self._unsettled}
        self._last = {one.key: made.get(one.key, one.cpus) for one in masks}
        looked_at = [one for one in masks if due is None or one.key in due]
        staying = tuple(self._staying(looked_at, limits.exclusive))
        self._unsettled = frozenset(one.mask.key for one in staying)
        if not (limits.exclusive or self._tried):
            self.saved.drop()
        used = CpuSet.union(one.cpus for one in staying if not one.serves_them)
        return Outcome(limits.exclusive - used, staying, len(made), planned.foreign)

    @property
    def not_restored(self) -> tuple[str, ...]:
        """After a look without exclusive CPUs: what does not have what was found, and why."""
        return tuple(f"interrupt {key}: {one.why}" for key, one in self._tried.items())

    def _write(self, changes: Iterable[Change], now_seconds: float) -> dict[str, CpuSet]:
        """Write masks unless that was in vain a moment ago; returns the kernel's answers."""
        made: dict[str, CpuSet] = {}
        tried: dict[str, _Tried] = {}
        for one in changes:
            key = one.mask.key
            before = self._tried.get(key)
            if before is not None and before.forbids(one, now_seconds):
                tried[key] = before
                continue
            try:
                made[key] = self.files.write(one.mask, one.cpus)
            except MaskGoneError:
                continue
            except MaskRefusedError as error:
                tried[key] = _Tried(one.cpus, one.mask.cpus, now_seconds, str(error))
            else:
                if made[key] != one.cpus:
                    why = f"the kernel gives it CPUs {made[key]}"
                    tried[key] = _Tried(one.cpus, made[key], now_seconds, why)
        self._tried = tried
        return made

    def _save_answers(self, made: Mapping[str, CpuSet]) -> None:
        """What the kernel has answered is ours, whatever was asked for, and nothing else is."""
        masks = dict(self.saved.masks)
        for key, got in made.items():
            masks[key] = replace(masks[key], ours=frozenset({got} - {masks[key].cpus}))
        self.saved.save(masks)

    def _staying(self, masks: Iterable[Mask], exclusive: CpuSet) -> Iterator[Staying]:
        """Which of these interrupts still occur on exclusive CPUs."""
        last = self._last or {}
        for mask in masks:
            if not mask.is_idle:
                now = replace(mask, cpus=last[mask.key])
                if cpus := self.files.read_effective(now) & exclusive:
                    tried = self._tried.get(mask.key)
                    why = tried.why if tried is not None else "it moves when it occurs next"
                    serves_them = tried is not None and now.cpus <= exclusive
                    yield Staying(now, cpus, why, serves_them, tried is not None)
