"""Partitions are made, changed and ended on a model of the kernel, whoever writes in between."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.partitions.files import make
from numapin_enforcer.partitions.partitioning import Partitioning, end_all, message_of
from numapin_enforcer.partitions.plan import MEMBER, UNTOUCHED, State, plan_partitions
from numapin_enforcer.partitions.saved import FILE_NAME, FoundPartitions
from support.fakes.kernels.partitions import PartitionModel
from support.fakes.manual_clock import ManualClock

CPUS = CpuSet.parse("0-7")
TOP, FIRST, SECOND, BURSTABLE = "k", "k/a/1", "k/a/2", "k/b/c/1"
PATHS = (TOP, "k/a", FIRST, SECOND, "k/b", "k/b/c", BURSTABLE)


def root(cpus: str) -> State:
    return State(CpuSet.parse(cpus), "root")


@pytest.fixture
def kernel() -> PartitionModel:
    return PartitionModel(CPUS, PATHS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def process(kernel: PartitionModel, folder: Path, clock: ManualClock) -> Partitioning:
    """A process that begins."""
    made = Partitioning(kernel, FoundPartitions(folder), clock)
    made.adopt(kernel.states)
    return made


@pytest.fixture
def work(kernel: PartitionModel, tmp_path: Path, clock: ManualClock) -> Partitioning:
    return process(kernel, tmp_path, clock)


def test_a_partition_is_made_and_ends_without_a_trace(
    kernel: PartitionModel, work: Partitioning, tmp_path: Path
) -> None:
    assert work.bring({FIRST: root("6-7"), BURSTABLE: root("4")}) == (True, frozenset())
    assert kernel.states[TOP] == State(CpuSet.parse("4,6-7"))
    assert (kernel.states[FIRST], kernel.states[BURSTABLE]) == (root("6-7"), root("4"))
    assert work.made == {FIRST: root("6-7"), BURSTABLE: root("4")}
    assert work.bring(work.made) == (False, frozenset())
    work.bring({})
    assert set(kernel.states.values()) == {UNTOUCHED}
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {}


def test_nothing_is_read_or_saved_while_nothing_is_wanted(
    kernel: PartitionModel, work: Partitioning, tmp_path: Path
) -> None:
    kernel.states = {}
    assert work.bring({}) == (False, frozenset())
    assert not (tmp_path / FILE_NAME).exists()


def test_a_change_by_others_is_found_and_reverted(
    kernel: PartitionModel, work: Partitioning
) -> None:
    wanted = {FIRST: root("6-7"), SECOND: root("5")}
    work.bring(wanted)
    kernel.states[FIRST] = State(CpuSet.parse("6-7"))
    assert work.bring(wanted) == (True, frozenset({FIRST}))
    assert kernel.states[FIRST] == root("6-7")
    kernel.remove(SECOND)
    assert work.bring({FIRST: root("6-7")}) == (True, frozenset())
    assert kernel.states["k/a"].exclusive == CpuSet.parse("6-7")


async def test_a_refused_partition_is_a_member_again_and_tried_ever_more_seldom(
    kernel: PartitionModel, work: Partitioning, clock: ManualClock
) -> None:
    kernel.is_permitted = False
    wanted = {FIRST: root("6-7")}
    tries = 0
    for _ in range(3000):
        is_written, _ = work.bring(wanted)
        tries += is_written
        assert kernel.states[FIRST] == UNTOUCHED
        await clock.advance(1.0)
    assert 8 <= tries <= 15
    (refusal,) = work.refused.values()
    assert "Enable partition not permitted" in refusal.why
    assert "CAP_SYS_ADMIN" in message_of(refusal)
    assert work.made == {}
    kernel.is_permitted = True
    work.bring({FIRST: root("6")})
    assert (kernel.states[FIRST], work.refused) == (root("6"), {})


def test_what_others_had_set_is_on_disk_and_restored_after_a_kill(
    kernel: PartitionModel, work: Partitioning, tmp_path: Path, clock: ManualClock
) -> None:
    theirs = State(CpuSet.parse("1"))
    kernel.states[TOP] = theirs
    work.bring({FIRST: root("6-7")})
    assert kernel.states[TOP].exclusive == CpuSet.parse("1,6-7")
    after = process(kernel, tmp_path, clock)
    after.bring({FIRST: root("6-7")})
    assert kernel.states[FIRST] == root("6-7")
    assert end_all(kernel, PATHS, FoundPartitions(tmp_path)) == []
    assert kernel.states == {**dict.fromkeys(PATHS, UNTOUCHED), TOP: theirs}


def test_nothing_is_written_before_what_was_found_is_on_disk(
    kernel: PartitionModel, tmp_path: Path, clock: ManualClock
) -> None:
    (tmp_path / "file").write_text("")
    work = Partitioning(kernel, FoundPartitions(tmp_path / "file"), clock)
    with pytest.raises(OSError, match="file"):
        work.bring({FIRST: root("6-7")})
    assert kernel.writes == []


def test_below_a_partition_of_others_nothing_is_written(
    kernel: PartitionModel, work: Partitioning
) -> None:
    kernel.states[TOP] = root("4-7")
    work.bring({FIRST: root("6-7")})
    assert kernel.writes == []
    assert "k is a partition of somebody else" in work.refused[FIRST].why


def test_a_damaged_file_is_no_reason_to_stop(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"k": "root"}', '{"k": ["9-1", "root"]}'):
        (tmp_path / FILE_NAME).write_text(text)
        assert FoundPartitions(tmp_path).states == {}


SETS = st.builds(CpuSet, st.sets(st.sampled_from(range(1, 8)), max_size=3))


@st.composite
def wants(draw: st.DrawFn) -> dict[str, State]:
    """Partitions of containers, whose CPUs are disjoint, as a spec has them."""
    found, taken = {}, CpuSet()
    for path in (FIRST, SECOND, BURSTABLE):
        cpus = draw(SETS) - taken
        if cpus:
            found[path] = State(cpus, draw(st.sampled_from(["root", "isolated"])))
            taken |= cpus
    return found


@given(st.lists(wants(), max_size=6), st.data())
def test_each_change_is_made_in_writes_that_the_kernel_accepts(
    each: list[dict[str, State]], data: st.DataObject
) -> None:
    """Also one that begins where a kill has left the last one."""
    kernel = PartitionModel(CPUS, PATHS)
    for wanted in [*each, {}]:
        states = dict(kernel.states)
        writes = plan_partitions(states, wanted, {})
        cut = data.draw(st.integers(0, len(writes)))
        assert make(kernel, writes[:cut]) == {}
        again = plan_partitions(dict(kernel.states), wanted, {})
        assert make(kernel, again) == {}
        if CPUS - CpuSet.union(one.exclusive for one in wanted.values()):
            assert {p: kernel.states[p] for p in wanted} == wanted
        assert plan_partitions(dict(kernel.states), wanted, {}) == []
    assert set(kernel.states.values()) == {UNTOUCHED}


@given(st.lists(wants(), min_size=2, max_size=2))
def test_no_write_gives_a_partition_cpus_of_another_one(each: list[dict[str, State]]) -> None:
    """After each single write a partition has just what is wanted before, or after."""
    kernel = PartitionModel(CPUS, PATHS)
    before, after = each
    make(kernel, plan_partitions(dict(kernel.states), before, {}))
    for write in plan_partitions(dict(kernel.states), after, {}):
        kernel.write(write)
        for path, one in kernel.states.items():
            if one.partition != MEMBER:
                assert one in (before.get(path), after.get(path))
            beside = [p for p in kernel.states if p != path and parent(p) == parent(path)]
            assert not any(one.exclusive & kernel.states[p].exclusive for p in beside)


def test_an_error_of_the_kernel_is_the_refusal(kernel: PartitionModel, work: Partitioning) -> None:
    kernel.states["k/b"] = State(CpuSet.parse("6"))
    work.bring({FIRST: root("6-7")})
    assert "EINVAL" in work.refused[FIRST].why
    assert kernel.states == {**dict.fromkeys(PATHS, UNTOUCHED), "k/b": State(CpuSet.parse("6"))}
    assert not isinstance(work.refused[FIRST].why, CgroupError)
