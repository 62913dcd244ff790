"""What cgroups had, in a file."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.host.cgroup_sets import Found
from numapin_enforcer.host.found import FoundCgroups

HAD = {
    "system.slice": Found(CpuSet(), CpuSet(), 1),
    "user.slice": Found(CpuSet((1,)), CpuSet((1,)), 2),
    "a\udcff\nb": Found(CpuSet((2, 3)), None, 3),
}


def test_the_next_process_reads_what_was_saved_first(tmp_path: Path) -> None:
    found = FoundCgroups(tmp_path / "new", "boot")
    found.add(HAD)
    found.add({"user.slice": Found(CpuSet((7,)), CpuSet((7,)), 2)})
    assert FoundCgroups(tmp_path / "new", "boot").cgroups == HAD
    found.drop(["system.slice", "gone"])
    assert FoundCgroups(tmp_path / "new", "boot").cgroups.keys() == HAD.keys() - {"system.slice"}


def test_a_boot_makes_what_was_saved_worthless(tmp_path: Path) -> None:
    FoundCgroups(tmp_path, "boot").add(HAD)
    assert FoundCgroups(tmp_path, "next boot").cgroups == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"boot": "boot"}', '{"boot":"boot","cgroups":{"a":1}}']
)
def test_a_damaged_file_is_logged_and_ignored(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "host-cgroups.json").write_text(text)
    assert FoundCgroups(tmp_path, "boot").cgroups == {}
    assert "cannot read which CPUs" in caplog.text
