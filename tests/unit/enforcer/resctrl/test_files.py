"""What is read of files, whatever they hold, and what is made of the kernel's answers."""

import os
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.files import RefusedError, Resctrl, ResctrlError, parse_schemata
from numapin_enforcer.resctrl.folder import MOST_GROUPS, KernelFolder
from numapin_enforcer.resctrl.values import Group, Kernel, Steps, Ways
from support.fakes.kernels.resctrl import FakeResctrl

FILES = {
    "schemata": "    MB:0= 100;1= 100\n    L3:0=7ff;1=7ff\n    L2:0=ff\n",
    "cpus_list": "0-7\n",
    "info/last_cmd_status": "ok\n",
    "info/L3/cbm_mask": "7ff\n",
    "info/L3/min_cbm_bits": "1\n",
    "info/L3/shareable_bits": "600\n",
    "info/MB/min_bandwidth": "10\n",
    "info/MB/bandwidth_gran": "10\n",
    "info/MB/delay_linear": "1\n",
    "mon_data/mon_L3_00/llc_occupancy": "1\n",
    "mon_groups/": "",
    "rt/mode": "shareable\n",
    "rt/schemata": "    MB:0=  50;1= 100\n    L3:0=00f;1=7ff\n",
    "rt/cpus_list": "5,7\n",
    "numapin/mon_data/mon_L3_00/llc_occupancy": "4096\n",
    "numapin/mon_data/mon_L3_00/mbm_total_bytes": "Unavailable\n",
    "numapin/mon_data/mon_L3_01/mbm_local_bytes": "18446744073709551615\n",
    "numapin/mon_data/mon_L3_01/mon_sub_L3_00/llc_occupancy": "1\n",
    "numapin/mode": "shareable\n",
    "numapin/schemata": "L3:0=7ff;1=7ff\n",
    "numapin/cpus_list": "\n",
}


def written(root: Path, files: dict[str, str]) -> Resctrl:
    for name, text in files.items():
        file = root / name
        if name.endswith("/"):
            file.mkdir(parents=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Resctrl(KernelFolder(root))


def test_a_mount_is_read(tmp_path: Path) -> None:
    found = written(tmp_path, FILES).read()
    everything = {("L3", 0): 0x7FF, ("L3", 1): 0x7FF}
    rt = {("MB", 0): 50, ("MB", 1): 100, ("L3", 0): 0xF, ("L3", 1): 0x7FF}
    assert found == Kernel(
        everything | {("MB", 0): 100, ("MB", 1): 100},
        (Group("numapin", values=everything), Group("rt", CpuSet.parse("5,7"), rt)),
        Ways(0x7FF, 1, 0x600),
        Steps(10, 10),
    )
    assert found.ours == found.groups[0]


def test_what_the_hardware_has_counted_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    assert written(tmp_path, FILES).counters() == {
        ("llc_occupancy", 0): 4096,
        ("mbm_local_bytes", 1): 18446744073709551615,
    }
    assert Resctrl(KernelFolder(tmp_path / "none")).counters() == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("schemata", "L3:0=7ff;1=-1\n"),
        ("schemata", "L3:0=7ff;1\n"),
        ("schemata", "MB:0=1_0\n"),
        ("schemata", "L3:0=" + "f" * 17),
        ("schemata", "L3\n"),
        ("schemata", "\0" * 70000),
        ("info/L3/cbm_mask", "many\n"),
        ("info/L3/min_cbm_bits", "-1\n"),
        ("info/MB/bandwidth_gran", "\n"),
        ("rt/cpus_list", "0-99999999\n"),
        ("rt/cpus_list", "x\n"),
        ("rt/schemata", "L3:0=zz\n"),
        ("numapin/mode", "pseudo-locked\n"),
    ],
)
def test_what_no_kernel_says_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ResctrlError):
        written(tmp_path, FILES | {name: text}).read()


@pytest.mark.parametrize("name", ["schemata", "rt/cpus_list"])
def test_links_and_pipes_are_not_read(tmp_path: Path, name: str) -> None:
    files = written(tmp_path, FILES)
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResctrlError):
        files.read()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ResctrlError):
        files.read()


def test_more_groups_than_hardware_has_are_not_read(tmp_path: Path) -> None:
    files = written(tmp_path, FILES)
    for number in range(MOST_GROUPS):
        (tmp_path / f"g{number}").mkdir()
    with pytest.raises(ResctrlError, match="more than"):
        files.read()


def test_files_of_the_kernel_are_written(tmp_path: Path) -> None:
    files = written(tmp_path, FILES)
    files.write_values("", "L3", {("L3", 0): 0x7F0, ("L3", 1): 0x7E0})
    assert (tmp_path / "schemata").read_text().startswith("L3:0=7f0;1=7e0\n")
    files.write_values("rt", "MB", {("MB", 1): 60})
    assert (tmp_path / "rt" / "schemata").read_text().startswith("MB:1=60\n")
    files.write_cpus(CpuSet.parse("2-3"))
    assert (tmp_path / "numapin" / "cpus_list").read_text() == "2-3\n"
    with pytest.raises(RefusedError, match="EEXIST"):
        files.make()
    with pytest.raises(RefusedError, match="ENOTEMPTY"):
        files.remove()  # the kernel removes it with all that is in it


def test_a_group_is_made_and_removed(tmp_path: Path) -> None:
    files = Resctrl(KernelFolder(tmp_path))
    files.make()
    assert (tmp_path / "numapin").is_dir()
    files.remove()
    files.remove()
    assert not (tmp_path / "numapin").exists()


def test_the_kernel_says_why_it_refuses() -> None:
    kernel = FakeResctrl(CpuSet.parse("0-3"), least=2)
    files = Resctrl(kernel)
    with pytest.raises(RefusedError, match=r"L3:0=1 \(EINVAL: Need at least 2 bits"):
        files.write_values("", "L3", {("L3", 0): 1})
    files.make()
    with pytest.raises(RefusedError, match="EINVAL: Can only assign online CPUs"):
        files.write_cpus(CpuSet.parse("3-4"))


def test_a_group_with_a_lock_has_no_values() -> None:
    kernel = FakeResctrl(CpuSet.parse("0-3"))
    kernel.make("a")
    kernel.write("a/mode", "pseudo-locksetup\n")
    assert Resctrl(kernel).read().groups == (Group("a"),)


def test_lines_of_other_resources_are_left_out() -> None:
    assert parse_schemata("L2:0=ff\nSMBA:0=2048\n  L3:7=1\n") == {("L3", 7): 1}
