"""Which writes a failed write blocks, and what happens to all others."""

import errno

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.apply import Failure, Outcome, Skipped, apply, unblocked
from numapin_enforcer.cgroups.errors import (
    CgroupError,
    CgroupReadOnlyError,
    CgroupRefusedError,
    CgroupVanishedError,
)
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.write import Inherited, Step, Value, Write


class Files:
    """Accepts all writes but those to the failing paths."""

    def __init__(self, **failing: type[CgroupError]) -> None:
        self.failing = failing
        self.errors: list[CgroupError] = []
        self.written: list[Write] = []
        self.effective: dict[str, str] = {}
        """What cgroups have after a write, where it is not what was written."""

    def read(self) -> Tree:
        raise AssertionError("apply must not read")

    def write(self, write: Write) -> None:
        kind = self.failing.get(write.path.replace("/", "_"))
        if kind is not None:
            self.errors.append(kind(write.path, str(write.value), errno.EBUSY, "no"))
            raise self.errors[-1]
        self.written.append(write)

    def read_effective_cpus(self, path: str) -> CpuSet:
        if path in self.effective:
            return CpuSet.parse(self.effective[path])
        return next(CpuSet.parse(str(one.value)) for one in self.written[::-1] if one.path == path)


def cpus(path: str, value: str, gains: str = "", leaves: str = "", exclusive: str = "") -> Write:
    gained, left = CpuSet.parse(gains), CpuSet.parse(leaves)
    return Write(path, CpuSet.parse(value), Step.NARROW, gained, left, exclusive)


def parent_of_exclusive(path: str, value: str, gains: str = "", leaves: str = "") -> Write:
    """A write to the parent of an exclusive container that gains and loses the same CPUs."""
    sets = (CpuSet.parse(gains), CpuSet.parse(leaves))
    child = Inherited(f"{path}/own", *sets, "b")
    return Write(path, CpuSet.parse(value), Step.NARROW, *sets, inherited=(child,))


def unbound(path: str, value: str, leaves: str, asked: str) -> Write:
    """A write to a cgroup that asks for CPUs which its parent does not have."""
    sets = (CpuSet(), CpuSet.parse(leaves))
    return Write(path, CpuSet.parse(value), Step.NARROW, *sets, unbound=CpuSet.parse(asked))


def mems(path: str, value: str, gains: str = "", leaves: str = "") -> Write:
    gained, left = MemSet.parse(gains), MemSet.parse(leaves)
    return Write(path, MemSet.parse(value), Step.MOVE_MEMORY, gained, left)


def test_the_outcome_lists_each_write_by_its_result() -> None:
    files = Files(gone=CgroupVanishedError, bad=CgroupRefusedError)
    gone, bad, after, good = (
        cpus("gone", "1"),
        cpus("bad", "0", leaves="1"),
        cpus("exclusive", "1", gains="1", exclusive="a"),
        cpus("good", "0", gains="0"),
    )
    outcome = apply((gone, bad, after, good), files)
    failure = Failure(bad, files.errors[-1])
    assert outcome == Outcome((good,), (gone,), (failure,), (Skipped(after, bad),))
    assert files.written == [good]
    assert (outcome.complete, outcome.missing) == (False, (bad, after))


def test_a_skipped_write_blocks_others_as_well() -> None:
    """In a chain, a container that was not moved has not left the CPUs of the next."""
    files = Files(bad=CgroupRefusedError)
    bad = cpus("bad", "0", leaves="3")
    one = cpus("one", "3", gains="3", leaves="2", exclusive="a")
    two = cpus("two", "2", gains="2", exclusive="b")
    outcome = apply((bad, one, two), files)
    assert outcome.skipped == (Skipped(one, bad), Skipped(two, one))
    assert Outcome((), (), (), (Skipped(one, bad),)).complete is False


def test_an_outcome_with_only_vanished_cgroups_is_complete() -> None:
    outcome = apply((cpus("gone", "1"), cpus("good", "1")), Files(gone=CgroupVanishedError))
    assert (outcome.complete, outcome.missing) == (True, ())
    assert Outcome((), (), (), ()).complete


def test_a_failure_in_an_earlier_part_of_the_plan_blocks_moves() -> None:
    bad, move = mems("pod", "0-2", gains="2"), mems("pod/c", "1", leaves="0")
    assert unblocked((move,), apply((bad,), Files(pod=CgroupRefusedError))) == (move,)
    bad = mems("pod", "1", gains="1")
    assert unblocked((move,), apply((bad,), Files(pod=CgroupRefusedError))) == ()


def test_a_blocked_move_blocks_others() -> None:
    bad = mems("pod/c", "1", gains="1")
    child, parent = mems("pod/c/d", "1", leaves="0"), mems("pod", "1", leaves="0")
    earlier = apply((bad,), Files(pod_c=CgroupRefusedError))
    assert unblocked((parent,), earlier) == (parent,)
    assert unblocked((child, parent), earlier) == ()


def test_with_read_only_cgroups_no_move_is_made() -> None:
    earlier = apply((mems("bad", "0-1", gains="1"),), Files(bad=CgroupReadOnlyError))
    assert unblocked((mems("one", "1", leaves="0"),), earlier) == ()


def test_with_read_only_cgroups_no_further_write_is_tried() -> None:
    files = Files(bad=CgroupReadOnlyError)
    bad, one, two = cpus("bad", "0", gains="0"), cpus("one", "1"), cpus("two", "1", gains="1")
    assert apply((bad, one, two), files).skipped == (Skipped(one, bad), Skipped(two, bad))
    files = Files(bad=CgroupRefusedError)
    assert apply((bad, one, two), files).made == (one, two)


MIGRATE = Write("x", value=True, step=Step.MOVE_MEMORY)
EXCLUSIVE = {"gains": "1", "exclusive": "a"}


@pytest.mark.parametrize(
    ("missing", "write", "blocked"),
    [
        (cpus("x", "0", leaves="1"), cpus("y", "1", **EXCLUSIVE), True),
        (cpus("x", "0", leaves="2"), cpus("y", "1", **EXCLUSIVE), False),
        (cpus("x", "0", leaves="1"), cpus("y", "0-1", gains="1"), False),
        (cpus("x", "0", leaves="1", exclusive="b"), cpus("y", "0-1", gains="1"), True),
        (cpus("x", "0", leaves="1", exclusive="a"), cpus("y", "1", **EXCLUSIVE), False),
        (cpus("x", "0", leaves="1", exclusive="b"), cpus("y", "1", **EXCLUSIVE), True),
        (cpus("x", "0-1", gains="1"), cpus("y", "1", **EXCLUSIVE), False),
        (cpus("x", "0-1", gains="1"), cpus("x/c", "1", gains="1"), True),
        (cpus("x", "0-1", gains="1"), cpus("x/c", "0", gains="0"), False),
        (cpus("x", "0-1", gains="1"), cpus("x", "1", leaves="0"), True),
        (cpus("x", "0-1", gains="1"), cpus("xy/c", "1", gains="1"), False),
        (cpus("x/c", "0", leaves="1"), cpus("x", "0", leaves="1"), True),
        (cpus("x/c", "0", leaves="1"), cpus("x", "0,2", gains="2"), True),
        (cpus("x/c", "0", leaves="1"), cpus("x", "0-1", leaves="2"), False),
        (cpus("x/c", "0"), cpus("x", "0-1", gains="1"), True),
        (cpus("x/c", "0"), cpus("x", "0", leaves="1"), False),
        (cpus("x/c", "0-1", gains="1"), cpus("x", "0", leaves="2"), False),
        (cpus("x/c", "0,2", gains="0"), cpus("x", "0", leaves="2"), True),
        (cpus("x/c", "0,2", gains="0"), cpus("x", "0,2", leaves="1"), False),
        (mems("x/c", "0,2", gains="0"), mems("x", "0", leaves="2"), True),
        (unbound("x/c", "0", "1", "3"), cpus("x", "0-3", gains="3"), True),
        (unbound("x/c", "0", "1", "4"), cpus("x", "0-3", gains="3"), False),
        (unbound("x/own/c", "0", "1", "3"), parent_of_exclusive("x", "0-3", gains="3"), True),
        (unbound("x/other/c", "0", "1", "3"), parent_of_exclusive("x", "0-3", gains="3"), False),
        (parent_of_exclusive("x", "0", leaves="1"), cpus("y", "0-1", gains="1"), True),
        (parent_of_exclusive("x", "0", leaves="2"), cpus("y", "0-1", gains="1"), False),
        (cpus("x", "0", leaves="1"), parent_of_exclusive("y", "0-1", gains="1"), True),
        (cpus("x", "0", leaves="2"), parent_of_exclusive("y", "0-1", gains="1"), False),
        (cpus("x/c", "0", leaves="1"), cpus("xy", "0", leaves="1"), False),
        (mems("x", "0", leaves="1"), cpus("x", "0", leaves="1"), False),
        (cpus("x", "0", leaves="1"), mems("x", "0", leaves="1"), False),
        (mems("x/c", "0", leaves="1"), mems("x", "0", leaves="1"), True),
        (cpus("x/c", "0-1", gains="1"), cpus("x", "0-3", gains="3"), False),
        (cpus("xy/c", "0", leaves="1"), cpus("x", "0", leaves="1"), False),
        (mems("x", "0-1", gains="1"), cpus("x/c", "1", gains="1"), False),
        (MIGRATE, Write("x/c", value=True, step=Step.MOVE_MEMORY), False),
        (mems("x", "0-1", gains="1"), Write("x/c", value=True, step=Step.MOVE_MEMORY), False),
    ],
)
def test_which_writes_a_failure_blocks(missing: Write, write: Write, blocked: bool) -> None:
    files = Files(**{missing.path.replace("/", "_"): CgroupRefusedError})
    failing = apply((missing,), files)
    assert unblocked((write,), failing) == (() if blocked else (write,))
    other = Files(**{missing.path.replace("/", "_"): CgroupRefusedError})
    outcome = apply((missing, write), other)
    if missing.path != write.path:
        assert (outcome.skipped == (Skipped(write, missing),)) == blocked
        assert (outcome.made == (write,)) != blocked


@pytest.mark.parametrize("value", [CpuSet([0]), MemSet([0]), True])
def test_every_kind_of_write_is_made(value: Value) -> None:
    write = Write("x", value, Step.NARROW)
    assert apply((write,), Files()).made == (write,)


MOVED = cpus("own", "1", gains="1", leaves="2", exclusive="a")
POOL = cpus("pool", "0,2", gains="2")


@pytest.mark.parametrize(
    ("effective", "blocked"),
    [
        pytest.param("1", False, id="it has left"),
        pytest.param("0-2", True, id="it has all that its parent has"),
        pytest.param("0", False, id="it has others than it asked for"),
    ],
)
def test_a_write_without_effect_blocks_what_relies_on_it(effective: str, blocked: bool) -> None:
    """v2 makes it, and leaves the container where it was if its parent has lost the new CPUs."""
    files = Files()
    files.effective["own"] = effective
    later = cpus("other", "0,2", gains="2", exclusive="b")
    outcome = apply((MOVED, POOL, later), files)
    assert [one.write for one in outcome.skipped] == ([POOL, later] if blocked else [])
    assert outcome.failed == ()


def test_a_container_that_moves_with_its_parent_is_read_back() -> None:
    files = Files()
    files.effective["pod/own"] = "2"
    outcome = apply((parent_of_exclusive("pod", "1", gains="1", leaves="2"), POOL), files)
    assert [one.write for one in outcome.skipped] == [POOL]


def test_a_container_that_has_returned_to_a_cpu_has_not_failed_to_leave_it() -> None:
    back = cpus("own", "1-2", gains="2", exclusive="a")
    assert apply((MOVED, back, POOL), Files()).complete


def test_a_container_that_ended_has_left() -> None:
    class Ended(Files):
        def read_effective_cpus(self, path: str) -> CpuSet:
            raise CgroupVanishedError(path, None, errno.ENODEV, "gone")

    assert apply((MOVED, POOL), Ended()).complete


def test_a_container_that_cannot_be_read_back_counts_as_not_moved() -> None:
    class Unreadable(Files):
        def read_effective_cpus(self, path: str) -> CpuSet:
            raise CgroupError(path, None, errno.EIO, "no")

    assert [one.write for one in apply((MOVED, POOL), Unreadable()).skipped] == [POOL]
