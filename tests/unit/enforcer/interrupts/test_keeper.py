"""What is saved before a write, and what the kernel does not move."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import InterruptsError
from numapin_enforcer.interrupts.keeper import RETRY_SECONDS, Keeper
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Limits, Mask
from numapin_enforcer.interrupts.saved_masks import FILE_NAME, SavedMasks
from support.fakes.kernels.masks import MANAGED, FakeMasks, KilledError

ALL = CpuSet.parse("0-3")
EXCLUSIVE = CpuSet.parse("2")


def limits(exclusive: CpuSet = EXCLUSIVE) -> Limits:
    return Limits(exclusive, ALL - exclusive, ALL)


@pytest.fixture
def kernel() -> FakeMasks:
    made = FakeMasks(ALL)
    made.plug("24", "eth0-rx")
    made.plug("25", "nvme0q3", managed=True)
    made.interrupts["25"].effective = EXCLUSIVE
    return made


@pytest.fixture
def keeper(kernel: FakeMasks, tmp_path: Path) -> Keeper:
    return Keeper(kernel, SavedMasks(tmp_path, "boot"))


def test_everything_keeps_off_and_comes_back(
    kernel: FakeMasks, keeper: Keeper, tmp_path: Path
) -> None:
    found = kernel.everything()
    outcome = keeper.look(limits(), 0.0)
    narrowed = CpuSet.parse("0-1,3")
    assert kernel.everything() == {
        DEFAULT: narrowed, WORKQUEUES: narrowed, "24": narrowed, "25": ALL
    }  # fmt: skip
    assert (outcome.written, outcome.foreign) == (3, ())
    assert keeper.look(limits(), 1.0).written == 0
    keeper.look(limits(CpuSet()), 2.0)
    assert kernel.everything() == found
    assert not list(tmp_path.iterdir())


def test_what_the_kernel_does_not_move_is_named_where_it_interrupts(
    kernel: FakeMasks, keeper: Keeper
) -> None:
    outcome = keeper.look(limits(), 0.0)
    assert list(map(str, outcome.staying)) == [f"25 (nvme0q3) on 2: {MANAGED}"]
    assert outcome.kept_off == CpuSet()
    kernel.interrupts["25"].effective = CpuSet.parse("1")
    later = keeper.look(limits(), 1.0)
    assert (later.staying, later.kept_off) == ((), EXCLUSIVE)


def test_a_queue_that_serves_exclusive_cpus_alone_is_named_and_harms_nobody(
    kernel: FakeMasks, keeper: Keeper
) -> None:
    kernel.interrupts["25"].cpus = EXCLUSIVE
    outcome = keeper.look(limits(), 0.0)
    assert [one.serves_them for one in outcome.staying] == [True]
    assert outcome.kept_off == EXCLUSIVE


def test_a_refused_write_is_repeated_at_a_bounded_rate(
    kernel: FakeMasks, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    write = kernel.write

    def noted(mask: Mask, cpus: CpuSet) -> CpuSet:
        asked.append(mask.key)
        return write(mask, cpus)

    monkeypatch.setattr(kernel, "write", noted)
    for second in range(int(RETRY_SECONDS) + 1):
        keeper.look(limits(), float(second))
    assert asked.count("25") == 2
    kernel.interrupts["25"].managed = False
    keeper.look(limits(), 2 * RETRY_SECONDS + 1)
    assert kernel.interrupts["25"].cpus == CpuSet.parse("0-1,3")


def test_an_interrupt_that_moves_when_it_comes_next_is_named_until_then(
    kernel: FakeMasks, keeper: Keeper
) -> None:
    del kernel.interrupts["25"]
    kernel.interrupts["24"].deferred = True
    kernel.interrupts["24"].effective = EXCLUSIVE
    (staying,) = keeper.look(limits(), 0.0).staying
    assert str(staying) == "24 (eth0-rx) on 2: it moves when it occurs next"
    assert len(keeper.look(limits(), 10.0).staying) == 1
    kernel.interrupts["24"].settle()
    assert keeper.look(limits(), 20.0).staying == ()


def test_a_later_process_names_what_an_earlier_one_could_not_move(
    kernel: FakeMasks, keeper: Keeper, tmp_path: Path
) -> None:
    keeper.look(limits(), 0.0)
    again = Keeper(kernel, SavedMasks(tmp_path, "boot"))
    assert len(again.look(limits(), 0.0).staying) == 1


def test_nothing_is_written_that_is_not_saved(
    kernel: FakeMasks, keeper: Keeper, tmp_path: Path
) -> None:
    found = kernel.everything()
    (tmp_path / FILE_NAME).with_suffix(".new").mkdir()
    with pytest.raises(OSError, match="interrupts"):
        keeper.look(limits(), 0.0)
    assert (kernel.everything(), kernel.writes) == (found, [])


@pytest.mark.parametrize("writes", range(4))
def test_a_kill_between_any_two_writes_loses_nothing(
    kernel: FakeMasks, keeper: Keeper, tmp_path: Path, writes: int
) -> None:
    found = kernel.everything()
    kernel.dies_after = writes
    if writes < 3:
        with pytest.raises(KilledError):
            keeper.look(limits(), 0.0)
    kernel.dies_after = None
    again = Keeper(kernel, SavedMasks(tmp_path, "boot"))
    again.look(limits(CpuSet()), 0.0)
    assert kernel.everything() == found


def test_masks_of_an_earlier_boot_are_not_restored(
    kernel: FakeMasks, keeper: Keeper, tmp_path: Path
) -> None:
    keeper.look(limits(), 0.0)
    assert SavedMasks(tmp_path, "boot").masks
    assert SavedMasks(tmp_path, "another boot").masks == {}


def test_a_damaged_file_is_reported_and_harms_nothing(
    kernel: FakeMasks, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_text('{"boot": "boot", "masks": {"24": ["0-", [], []]}}')
    keeper = Keeper(kernel, SavedMasks(tmp_path, "boot"))
    assert "they stay narrowed" in caplog.text
    keeper.look(limits(), 0.0)
    assert kernel.interrupts["24"].cpus == CpuSet.parse("0-1,3")


def test_a_mask_that_the_kernel_answers_otherwise_is_restored_all_the_same(
    kernel: FakeMasks, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some interrupt controllers note the one CPU that they have chosen."""
    write = kernel.write

    def narrower(mask: Mask, cpus: CpuSet) -> CpuSet:
        one = CpuSet((min(cpus),)) if cpus != ALL else cpus
        return write(mask, one)

    monkeypatch.setattr(kernel, "write", narrower)
    assert keeper.look(limits(), 0.0).written == 3
    assert keeper.look(limits(), 1.0).written == 0
    assert kernel.interrupts["24"].cpus == CpuSet.parse("0")
    keeper.look(limits(CpuSet()), 2.0)
    assert kernel.interrupts["24"].cpus == ALL


def test_files_that_cannot_be_written_are_an_error(kernel: FakeMasks, keeper: Keeper) -> None:
    kernel.read_only = True
    with pytest.raises(InterruptsError):
        keeper.look(limits(), 0.0)
