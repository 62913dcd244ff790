"""What the kernel lets the kubelet's cgroup use, by files of cgroup v1 and v2."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.cgroupfs import EFFECTIVE_FILES
from numapin_enforcer.cgroups.kubepods.allowed import read_allowed
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Cgroup, Version

OF_ROOT = "the root cgroup here has no others (the node is a container, or a partition)"


def put(mount: Path, path: str, cpus: str, mems: str = "0-1") -> None:
    (mount / path).mkdir(parents=True, exist_ok=True)
    for names in EFFECTIVE_FILES.values():
        for name, text in zip(names, (cpus, mems), strict=True):
            (mount / path / name).write_text(f"{text}\n")


def mounts(folder: Path, version: Version = Version.V2) -> Mounts:
    return Mounts(version, folder, folder)


@pytest.mark.parametrize(
    ("version", "cgroups", "cpus", "limit"),
    [
        (Version.V2, {"": "0-7", "kubepods": "0-7"}, "0-7", OF_ROOT),
        (Version.V2, {"": "4-7", "kubepods": "4-7"}, "4-7", OF_ROOT),
        (Version.V2, {"": "0-7", "kubepods": "2-7"}, "2-7", "cgroup kubepods has no others"),
        (Version.V2, {"": "0-7", "a": "4-7", "a/kubepods": "4-7"}, "4-7", "cgroup a has no others"),
        (Version.V2, {"": "0-7", "a": "4-7", "a/kubepods": "5"}, "5", "cgroup a/kubepods has"),
        (Version.V2, {"": "0-3"}, "0-3", OF_ROOT),
        (Version.V2, {}, "", ""),
        (Version.V1, {"": "0-7", "kubepods": "2-7"}, "0-7", OF_ROOT),
        (Version.V1, {"": "4-7", "kubepods": "4-7"}, "4-7", OF_ROOT),
        (Version.V1, {"": "0-7", "a": "4-7", "a/kubepods": "5"}, "4-7", "cgroup a has no others"),
        (Version.V1, {"": "0-7", "a": "", "a/kubepods": ""}, "0-7", OF_ROOT),
    ],
)
def test_what_pods_may_use(
    tmp_path: Path, version: Version, cgroups: dict[str, str], cpus: str, limit: str
) -> None:
    for path, text in cgroups.items():
        put(tmp_path, path, text)
    root = "a/kubepods" if "a" in cgroups else "kubepods"
    found = read_allowed(mounts(tmp_path, version), root)
    assert str(found.cpus) == cpus
    assert found.cpus_limit.startswith(limit)
    assert str(found.mems) == ("0-1" if cpus else "")


def test_the_setting_is_named(tmp_path: Path) -> None:
    put(tmp_path, "", "0-7")
    put(tmp_path, "kubepods.slice", "2-7", "1")
    found = read_allowed(mounts(tmp_path), "kubepods.slice")
    assert found.cpus_limit == (
        "cgroup kubepods.slice has no others (cpuset.cpus, or AllowedCPUs= in systemd)"
    )
    assert found.mems_limit == (
        "cgroup kubepods.slice has no others (cpuset.mems, or AllowedMemoryNodes= in systemd)"
    )


def test_cpus_of_a_partition_below_are_of_the_node(tmp_path: Path) -> None:
    put(tmp_path, "", "0-5")
    put(tmp_path, "kubepods", "0-5")
    pod = Cgroup("kubepods/podp", CpuSet(), MemSet(), CpuSet.parse("6-7"), MemSet([0]))
    assert str(read_allowed(mounts(tmp_path), "kubepods", (pod,)).cpus) == "0-7"


@pytest.mark.parametrize("text", ["", "many"])
def test_a_file_that_says_nothing_limits_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "", text)
    put(tmp_path, "kubepods", text)
    assert not read_allowed(mounts(tmp_path), "kubepods").cpus


@pytest.mark.parametrize(
    ("cgroup_root", "kubepods", "cpus"),
    [
        ("/", "kubepods", "4-7"),
        ("/", "kubepods.slice", "4-7"),
        ("/", "", "0-7"),
        ("/a-b", "a-b/kubepods", "4-7"),
        ("/a-b", "a_b.slice/a_b-kubepods.slice", "4-7"),
    ],
)
def test_the_finder_knows_the_cgroup(
    tmp_path: Path, cgroup_root: str, kubepods: str, cpus: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu")
    put(tmp_path, "", "0-7")
    if kubepods:
        put(tmp_path, kubepods, "4-7")
        for name in ("cpuset.cpus", "cpuset.mems"):
            (tmp_path / kubepods / name).write_text("\n")
    finder = KubepodsFinder(tmp_path, cgroup_root)
    assert str(finder.allowed().cpus) == cpus
    finder.open()
    assert str(finder.allowed().cpus) == cpus
    finder.close()
