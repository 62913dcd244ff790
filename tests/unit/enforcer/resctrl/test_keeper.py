"""Looks at a resctrl that refuses what the kernel refuses, and that others write as well."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.files import Resctrl, ResctrlError
from numapin_enforcer.resctrl.saved import FILE_NAME
from numapin_enforcer.resctrl.updater import Host
from numapin_enforcer.resctrl.values import GROUP, NOTHING, Wanted
from support.fakes.kernels.resctrl import CODE_AND_DATA, FakeResctrl, KilledError

CPUS = CpuSet.parse("2-3")
WANTED = Wanted(CPUS, frozenset({0}), l3_percent=40, others_bandwidth=50)
Change = Callable[[FakeResctrl], None]


def test_exclusive_cpus_have_their_share_and_everything_is_restored(
    host: Host, kernel: FakeResctrl, tmp_path: Path
) -> None:
    found = kernel.everything()
    outcome = host.keeper().look(WANTED)
    assert (outcome.cpus, outcome.problems) == (CPUS, ())
    assert outcome.schemata == "L3:0=1f MB:0=100"
    assert kernel.all_groups[GROUP].values["L3", 0] == 0x1F
    assert kernel.default.values == {
        ("L3", 0): 0x7E0,
        ("L3", 1): 0x7FF,
        ("MB", 0): 50,
        ("MB", 1): 100,
    }
    assert host.keeper().look(NOTHING).problems == ()
    assert kernel.everything() == found
    assert not (tmp_path / FILE_NAME).exists()


def test_a_second_look_writes_nothing(host: Host, kernel: FakeResctrl) -> None:
    keeper = host.keeper()
    keeper.look(WANTED)
    before = len(kernel.writes)
    outcome = keeper.look(WANTED)
    assert (len(kernel.writes), outcome.written, outcome.foreign) == (before, 0, 0)


def test_what_the_hardware_rounds_is_not_written_again(host: Host, kernel: FakeResctrl) -> None:
    keeper = host.keeper()
    kernel.rounded_to = 60
    keeper.look(WANTED)
    assert kernel.default.values["MB", 0] == 60
    before = len(kernel.writes)
    keeper.look(WANTED)
    assert len(kernel.writes) == before
    host.keeper().look(NOTHING)
    assert kernel.default.values["MB", 0] == 100


@pytest.mark.parametrize(
    "made",
    [
        FakeResctrl(CpuSet.parse("0-7"), lines=CODE_AND_DATA),
        FakeResctrl(CpuSet.parse("0-7"), caches=(3, 17), ways=20, least=2, hardware=0xC0000),
        FakeResctrl(CpuSet.parse("0-7"), ways=16, hardware=0, sparse=True, bandwidth=2048),
        FakeResctrl(CpuSet.parse("0-7"), bandwidth=4294967295),
        FakeResctrl(CpuSet.parse("0-7"), lines=()),
        FakeResctrl(CpuSet.parse("0-7"), bandwidth=0),
    ],
    ids=["cdp", "cache ids with gaps", "AMD", "mba_MBps", "no CAT", "no MBA"],
)
def test_machines_differ(made: FakeResctrl, tmp_path: Path) -> None:
    host, found = Host(Resctrl(made), tmp_path, "boot"), made.everything()
    outcome = host.keeper().look(replace(WANTED, caches=frozenset({made.caches[0]})))
    assert outcome.cpus == made.all_groups[GROUP].cpus == CPUS
    assert all("refused" not in one for one in outcome.problems)
    limits = [value for (line, _), value in made.default.values.items() if line == "MB"]
    assert any("in percent" in one for one in outcome.problems) == (limits != [50, 100])
    for line in made.lines:
        ours = made.all_groups[GROUP].values[line, made.caches[0]]
        assert ours
        assert not ours & made.default.values[line, made.caches[0]]
    host.keeper().look(NOTHING)
    assert made.everything() == found


def test_a_machine_that_only_counts_is_named(tmp_path: Path) -> None:
    made = FakeResctrl(CpuSet.parse("0-7"), lines=(), bandwidth=0)
    outcome = Host(Resctrl(made), tmp_path, "boot").keeper().look(WANTED)
    assert (made.writes, outcome.cpus) == ([], CpuSet())
    assert len(outcome.problems) == 2


def delete(kernel: FakeResctrl) -> None:
    kernel.remove(GROUP)


def widen(kernel: FakeResctrl) -> None:
    kernel.write("schemata", "L3:0=7ff;1=7ff\n")


def rewrite(kernel: FakeResctrl) -> None:
    kernel.write(f"{GROUP}/schemata", "L3:0=7ff\nMB:0=10\n")


def drop(kernel: FakeResctrl) -> None:
    kernel.write("cpus_list", f"{kernel.online}\n")


def loosen(kernel: FakeResctrl) -> None:
    kernel.write("schemata", "MB:0=90\n")


@pytest.mark.parametrize("change", [delete, widen, rewrite, drop, loosen])
def test_what_others_undo_is_done_again_and_counted(
    host: Host, kernel: FakeResctrl, change: Change
) -> None:
    found, keeper = kernel.everything(), host.keeper()
    keeper.look(WANTED)
    ours = kernel.everything()
    change(kernel)
    assert kernel.everything() != ours
    outcome = keeper.look(WANTED)
    assert kernel.everything() == ours
    assert outcome.foreign >= 1
    assert outcome.problems == ()
    keeper.look(NOTHING)
    assert kernel.everything() == found


def test_cpus_that_another_group_takes_stay_there_and_are_named(
    host: Host, kernel: FakeResctrl
) -> None:
    keeper = host.keeper()
    keeper.look(WANTED)
    kernel.make("rt")
    kernel.write("rt/cpus_list", "3,7\n")
    outcome = keeper.look(WANTED)
    assert kernel.all_groups["rt"].cpus == CpuSet.parse("3,7")
    assert outcome.cpus == kernel.all_groups[GROUP].cpus == CpuSet.parse("2")
    assert outcome.problems[0] == "CPUs 3 are in the resctrl group rt, and stay there"
    rt = kernel.all_groups["rt"]
    keeper.look(NOTHING)
    assert kernel.all_groups.keys() == {"", "rt"}
    assert kernel.all_groups["rt"] == rt


def test_without_a_free_class_nothing_is_divided(
    host: Host, kernel: FakeResctrl, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        kernel.make(name)
    found = kernel.everything()
    outcome = host.keeper().look(WANTED)
    assert kernel.everything() == found
    [problem] = [one for one in outcome.problems if "ENOSPC" in one]
    assert "Out of CLOSIDs" in problem
    assert not (tmp_path / FILE_NAME).exists()
    kernel.remove("a")
    assert host.keeper().look(WANTED).cpus == CPUS


def test_ways_that_a_group_has_taken_for_itself_are_left_to_it(
    host: Host, kernel: FakeResctrl
) -> None:
    keeper = host.keeper()
    keeper.look(WANTED)
    kernel.remove(GROUP)
    kernel.make("rt")
    kernel.write("rt/schemata", "L3:0=1f;1=1\n")
    kernel.write("schemata", "L3:1=7fe\n")
    kernel.write("rt/mode", "exclusive\n")
    keeper.look(WANTED)
    assert kernel.all_groups["rt"].values["L3", 0] == 0x1F
    assert GROUP not in kernel.all_groups or not (kernel.all_groups[GROUP].values["L3", 0] & 0x1F)


def test_a_group_of_its_own_with_a_lock_is_left_alone(host: Host, kernel: FakeResctrl) -> None:
    kernel.make(GROUP)
    kernel.write(f"{GROUP}/mode", "pseudo-locksetup\n")
    before = kernel.everything()
    with pytest.raises(ResctrlError, match="remove that group"):
        host.keeper().look(WANTED)
    assert kernel.everything() == before


def test_locked_ways_of_others_cost_no_cpus(host: Host, kernel: FakeResctrl) -> None:
    kernel.write("schemata", "L3:0=7f;1=7f\n")
    kernel.make("lock")
    kernel.write("lock/schemata", "L3:0=80;1=80\n")
    kernel.write("lock/mode", "pseudo-locked\n")
    outcome = host.keeper().look(WANTED)
    assert (outcome.cpus, outcome.problems) == (CPUS, ())


def test_our_group_may_be_exclusive_and_is_released(host: Host, kernel: FakeResctrl) -> None:
    found, keeper = kernel.everything(), host.keeper()
    keeper.look(replace(WANTED, caches=frozenset({0, 1})))
    kernel.write(f"{GROUP}/mode", "exclusive\n")
    assert keeper.look(replace(WANTED, caches=frozenset({0, 1}))).problems == ()
    assert keeper.look(NOTHING).problems == ()
    assert kernel.everything() == found


def test_offline_cpus_are_put_back_when_they_return(host: Host, kernel: FakeResctrl) -> None:
    keeper = host.keeper()
    keeper.look(WANTED)
    kernel.lose(CpuSet((3,)))
    outcome = keeper.look(replace(WANTED, cpus=CpuSet((2,))))
    assert (outcome.cpus, outcome.problems, outcome.foreign) == (CpuSet((2,)), (), 0)
    kernel.online |= CpuSet((3,))
    kernel.default.cpus |= CpuSet((3,))
    outcome = keeper.look(WANTED)
    assert (outcome.cpus, outcome.foreign) == (CPUS, 0)


def test_a_cpu_that_went_offline_a_moment_ago_is_said(host: Host, kernel: FakeResctrl) -> None:
    kernel.lose(CpuSet((3,)))
    outcome = host.keeper().look(WANTED)
    assert outcome.cpus == CpuSet()
    assert "Can only assign online CPUs" in outcome.problems[-1]


@pytest.mark.parametrize("after", range(9))
@pytest.mark.parametrize("then", [WANTED, NOTHING], ids=["goes on", "releases"])
def test_a_process_that_is_killed_loses_nothing(
    host: Host, kernel: FakeResctrl, after: int, then: Wanted, tmp_path: Path
) -> None:
    found = kernel.everything()
    kernel.dies_after = after
    for wanted in (WANTED, replace(WANTED, l3_percent=80), NOTHING):
        try:
            host.keeper().look(wanted)
        except KilledError:
            break
    kernel.dies_after = None
    outcome = host.keeper().look(then)
    assert (outcome.cpus, outcome.problems, outcome.foreign) == (then.cpus, (), 0)
    host.keeper().look(NOTHING)
    assert kernel.everything() == found
    assert not (tmp_path / FILE_NAME).exists()


def test_nothing_is_written_that_could_not_be_saved(
    host: Host, kernel: FakeResctrl, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).with_suffix(".new").mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - any errno of a disk
        host.keeper().look(WANTED)
    assert kernel.writes == []


def test_what_was_saved_is_of_one_boot(host: Host, kernel: FakeResctrl) -> None:
    host.keeper().look(WANTED)
    booted = FakeResctrl(kernel.online)
    Host(Resctrl(booted), host.state_dir, "next").keeper().look(NOTHING)
    assert booted.writes == []


def test_what_cannot_be_restored_is_kept_and_named(
    host: Host, kernel: FakeResctrl, tmp_path: Path
) -> None:
    keeper = host.keeper()
    keeper.look(WANTED)
    kernel.make("rt")
    kernel.write(f"{GROUP}/schemata", "L3:0=1;1=7fe\n")
    kernel.write("rt/schemata", "L3:0=2;1=1\n")
    kernel.write("schemata", "L3:1=7fe\n")
    kernel.write("rt/mode", "exclusive\n")
    outcome = keeper.look(NOTHING)
    assert any("Overlaps with exclusive group" in one for one in outcome.problems)
    assert (tmp_path / FILE_NAME).exists()
    kernel.remove("rt")
    assert keeper.look(NOTHING).problems == ()
    assert kernel.default.values["L3", 0] == 0x7FF
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize(("name", "said"), [("read_only", "EROFS"), ("mounted", "ENOENT")])
def test_without_the_right_it_is_said_what_is_missing(
    host: Host, kernel: FakeResctrl, name: str, said: str
) -> None:
    setattr(kernel, name, name == "read_only")
    with pytest.raises(ResctrlError, match=f"{said}.*component resctrl"):
        host.keeper().look(WANTED)
