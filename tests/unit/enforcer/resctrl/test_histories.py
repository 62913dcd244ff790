"""Whatever happens in whatever order, others keep off the ways, and all ends as they want it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.files import Resctrl
from numapin_enforcer.resctrl.keeper import Keeper
from numapin_enforcer.resctrl.saved import SavedRecord
from numapin_enforcer.resctrl.values import GROUP, Wanted
from support.fakes.kernels.resctrl import FakeResctrl, KilledError

CACHES = (0, 1)
wanted = st.builds(
    Wanted,
    st.sets(st.integers(2, 5)).map(CpuSet),
    st.sets(st.sampled_from(CACHES), min_size=1).map(frozenset),
    st.sampled_from((0, 10, 40, 60)),
    st.sampled_from((100, 50)),
    st.sampled_from((100, 70, 30)),
)
runs = st.tuples(st.integers(0, 7), st.integers(1, 8)).map(
    lambda one: ((1 << one[1]) - 1 << one[0]) & 0xFF
)
steps = st.one_of(
    st.tuples(st.just("look"), wanted),
    st.tuples(st.just("killed"), wanted, st.integers(0, 8)),
    st.tuples(st.just("ways"), st.sampled_from(CACHES), runs),
    st.tuples(st.just("limit"), st.sampled_from(CACHES), st.sampled_from((20, 40, 80, 100))),
    st.tuples(st.just("take"), st.integers(0, 7)),
    st.tuples(st.just("delete")),
)


class History:
    """A machine, its enforcers, and another program beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = FakeResctrl(CpuSet.parse("0-7"), CACHES, ways=8, hardware=0xC0)
        self.kernel.make("rt")
        self.start()

    def start(self) -> None:
        self.keeper = Keeper(Resctrl(self.kernel), SavedRecord(self.folder, "boot"))

    def look(self, asked: Wanted) -> None:
        rt = (self.kernel.all_groups["rt"].cpus, self.kernel.all_groups["rt"].values.copy())
        outcome = self.keeper.look(asked)
        assert (self.kernel.all_groups["rt"].cpus, self.kernel.all_groups["rt"].values) == rt
        ours = self.kernel.all_groups.get(GROUP)
        if not asked.cpus:
            assert ours is None
            assert not list(self.folder.iterdir())
            return
        if ours is not None:
            assert ours.cpus == asked.cpus - rt[0]
            assert outcome.cpus == ours.cpus
            for cache, mask in self.keeper.saved.record.ways.items():
                assert ours.values["L3", cache] == mask
                assert mask.bit_count() == -(-8 * asked.l3_percent // 100)
                assert not self.kernel.default.values["L3", cache] & mask
            if asked.others_bandwidth < 100:
                limits = [self.kernel.default.values["MB", cache] for cache in asked.caches]
                assert max(limits) <= asked.others_bandwidth
        written = len(self.kernel.writes)
        again = self.keeper.look(asked)
        assert (len(self.kernel.writes), again.foreign) == (written, 0)


@given(st.lists(steps, max_size=20))
def test_all_ends_as_it_was_found_or_as_others_have_set_it(
    history: list[tuple[object, ...]],
) -> None:
    with TemporaryDirectory() as folder:
        made = History(Path(folder))
        found = made.kernel.default.values.copy()
        is_foreign = False
        for step in history:
            match step:
                case ("look", Wanted() as asked):
                    made.look(asked)
                case ("killed", Wanted() as asked, int(after)):
                    made.kernel.dies_after = len(made.kernel.writes) + after
                    try:
                        made.keeper.look(asked)
                    except KilledError:
                        made.start()
                    made.kernel.dies_after = None
                case ("ways", int(cache), int(mask)):
                    made.kernel.write("schemata", f"L3:{cache}={mask:x}\n")
                    is_foreign = True
                case ("limit", int(cache), int(percent)):
                    made.kernel.write("schemata", f"MB:{cache}={percent}\n")
                    is_foreign = True
                case ("take", int(cpu)):
                    made.kernel.write("rt/cpus_list", f"{cpu}\n")
                case ("delete",) if GROUP in made.kernel.all_groups:
                    made.kernel.remove(GROUP)
        made.look(Wanted())
        assert is_foreign or made.kernel.default.values == found
