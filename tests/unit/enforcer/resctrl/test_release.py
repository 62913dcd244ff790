"""`--release` of caches."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.release import ReleaseError, restore_caches
from numapin_enforcer.resctrl.saved import FILE_NAME
from numapin_enforcer.resctrl.updater import Host
from numapin_enforcer.resctrl.values import GROUP, Wanted
from support.fakes.kernels.resctrl import FakeResctrl

WANTED = Wanted(CpuSet.parse("2-3"), frozenset({0}), l3_percent=40, others_bandwidth=50)


def test_everything_is_as_it_was_found(host: Host, kernel: FakeResctrl, tmp_path: Path) -> None:
    found = kernel.everything()
    host.keeper().look(WANTED)
    restore_caches(host)
    assert kernel.everything() == found
    assert not (tmp_path / FILE_NAME).exists()


def test_nothing_is_read_where_caches_were_left_alone(host: Host, kernel: FakeResctrl) -> None:
    restore_caches(host)
    assert kernel.reads == 0


def test_what_others_have_written_since_stays(host: Host, kernel: FakeResctrl) -> None:
    host.keeper().look(WANTED)
    kernel.remove(GROUP)
    kernel.make("rt")
    kernel.write("rt/cpus_list", "3\n")
    kernel.write("schemata", "L3:0=7\nMB:0=30\n")
    restore_caches(host)
    assert kernel.all_groups["rt"].cpus == CpuSet((3,))
    assert (kernel.default.values["L3", 0], kernel.default.values["MB", 0]) == (7, 30)


@pytest.mark.parametrize("name", ["read_only", "mounted"])
def test_it_is_said_what_is_left(
    host: Host, kernel: FakeResctrl, name: str, tmp_path: Path
) -> None:
    host.keeper().look(WANTED)
    setattr(kernel, name, name == "read_only")
    with pytest.raises(ReleaseError, match="caches were not released"):
        restore_caches(host)
    assert (tmp_path / FILE_NAME).exists()


def test_a_damaged_record_restores_nothing_and_the_group_ends(
    host: Host, kernel: FakeResctrl, tmp_path: Path
) -> None:
    host.keeper().look(WANTED)
    (tmp_path / FILE_NAME).write_text('{"boot": "boot", "values": [["L3", "x"]], "ways": 1}')
    restore_caches(host)
    assert GROUP not in kernel.all_groups
    assert not (tmp_path / FILE_NAME).exists()
