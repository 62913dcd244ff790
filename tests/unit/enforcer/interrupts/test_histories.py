"""Whatever happens in whatever order, interrupts keep off exclusive CPUs and end as found."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import MaskRefusedError
from numapin_enforcer.interrupts.keeper import Keeper, Outcome
from numapin_enforcer.interrupts.plan import DEFAULT, Limits
from numapin_enforcer.interrupts.saved_masks import SavedMasks
from support.fakes.kernels.masks import FakeMasks, KilledError

ALL = CpuSet.parse("0-3")
NEAR = {0: CpuSet.parse("0-1"), 1: CpuSet.parse("2-3")}
NUMBERS = ("24", "25", "26")
some_cpus = st.sets(st.integers(0, 3), min_size=1).map(CpuSet)
keys = st.sampled_from((*NUMBERS, DEFAULT))
steps = st.one_of(
    st.tuples(st.just("look"), st.sets(st.integers(0, 2)).map(CpuSet)),
    st.tuples(st.just("killed look"), st.sets(st.integers(0, 2)).map(CpuSet), st.integers(0, 4)),
    st.tuples(st.just("plug"), st.sampled_from(NUMBERS), st.integers(-1, 1), st.booleans()),
    st.tuples(st.just("unplug"), st.sampled_from(NUMBERS)),
    st.tuples(st.just("write"), keys, some_cpus),
)


def limits(exclusive: CpuSet) -> Limits:
    return Limits(exclusive, ALL - exclusive, ALL, NEAR)


class History:
    """A machine, the process that narrows its masks, and what others want them to be."""

    def __init__(self, folder: Path) -> None:
        self.kernel = FakeMasks(ALL, NEAR)
        self.folder = folder
        self.exclusive = CpuSet()
        self.wanted = self.kernel.everything()
        self.seen = dict(self.wanted)
        self.new = set[str]()
        self.serial: Iterator[int] = iter(range(1000))
        self.restart()
        self.plug("24", 0, managed=False)

    def restart(self) -> None:
        self.keeper = Keeper(self.kernel, SavedMasks(self.folder, "boot"))

    def plug(self, number: str, numa_node: int, *, managed: bool) -> None:
        name = f"device{next(self.serial)}"
        is_ours = self.kernel.default == self.seen[DEFAULT]
        default = self.wanted[DEFAULT] if is_ours else self.kernel.default
        without_us = FakeMasks(ALL, NEAR, default=default)
        for kernel in (without_us, self.kernel):
            kernel.plug(number, name, numa_node=numa_node, managed=managed)
        self.seen[number] = self.kernel.everything()[number]
        self.new.add(number)
        self.wanted[number] = without_us.everything()[number]

    def write(self, key: str, cpus: CpuSet) -> None:
        if key in self.kernel.everything():
            if key in self.new:  # else nobody could tell this from what a new interrupt begins with
                self.look(self.exclusive)
            try:
                self.kernel.set(key, cpus)
            except MaskRefusedError:
                return
            if key == DEFAULT:  # else nobody could tell whose default a new interrupt begins with
                self.look(self.exclusive)

    def look(self, exclusive: CpuSet) -> Outcome:
        self._note_others(exclusive)
        outcome = self.keeper.look(limits(exclusive), 0.0)
        self.exclusive, self.seen = exclusive, self.kernel.everything()
        self.new.clear()
        return outcome

    def killed_look(self, exclusive: CpuSet, after: int) -> None:
        """The next process goes on at once: nobody writes between."""
        self.kernel.dies_after = len(self.kernel.writes) + after
        try:
            self.look(exclusive)
        except KilledError:
            self.kernel.dies_after = None
            self.restart()
            self.seen = self.kernel.everything()
            self.look(exclusive)
        self.kernel.dies_after = None

    def _note_others(self, exclusive: CpuSet) -> None:
        """What others have set off exclusive CPUs, or before the first look, is what they want."""
        known = self.keeper.saved.masks
        now = self.kernel.everything()
        self.wanted = {key: self.wanted[key] for key in now}
        for key, cpus in now.items():
            if cpus != self.seen[key] and (key not in known or not cpus & exclusive):
                self.wanted[key] = cpus

    def check(self, outcome: Outcome) -> None:
        managed = {key for key, one in self.kernel.interrupts.items() if one.managed}
        for key, cpus in self.kernel.everything().items():
            assert cpus
            if key not in managed:
                assert not cpus & self.exclusive
                assert cpus == limits(self.exclusive).allowed(self.wanted[key], self._node(key))
        used = CpuSet.union(self.kernel.interrupts[key].effective for key in managed)
        assert outcome.kept_off == self.exclusive - used
        assert {one.mask.key for one in outcome.staying} <= managed

    def _node(self, key: str) -> int:
        return self.kernel.interrupts[key].numa_node if key.isdigit() else -1


@given(st.lists(steps, max_size=25))
def test_interrupts_keep_off_and_end_as_others_want_them(history: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        made = History(Path(folder))
        for step in history:
            match step:
                case ("look", CpuSet() as exclusive):
                    made.check(made.look(exclusive))
                case ("killed look", CpuSet() as exclusive, int(after)):
                    made.killed_look(exclusive, after)
                case ("plug", str(number), int(node), bool(managed)):
                    made.plug(number, node, managed=managed)
                case ("unplug", str(number)):
                    made.kernel.interrupts.pop(number, None)
                case ("write", str(key), CpuSet() as cpus):
                    made.write(key, cpus)
        made.look(CpuSet())
        assert made.kernel.everything() == made.wanted
        assert not list(Path(folder).iterdir())
