import errno
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import (
    CgroupError,
    CgroupRefusedError,
    CgroupVanishedError,
    error_of,
)
from numapin_enforcer.cgroups.kubepods.finder import NoKubepodsError, find_naming
from numapin_enforcer.cgroups.mounts import Mounts, NoCpusetError, find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Version
from numapin_enforcer.cgroups.write import Quota, Step, Write

FILES = {
    Version.V1: ("cpuset.cpus", "cpuset.mems", "cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus", "cpuset.mems", "cpuset.cpus.effective", "cpuset.mems.effective"),
}


def put(folder: Path, version: Version, *texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(FILES[version], texts, strict=True):
        (folder / name).write_text(f"{text}\n")


def mounted(folder: Path, version: Version) -> Mounts:
    return Mounts(version, folder, folder)


@pytest.mark.parametrize(
    ("made", "version", "cpuset", "cpu"),
    [
        ({"cgroup.controllers": "cpuset cpu memory"}, Version.V2, ".", "."),
        ({"unified/cgroup.controllers": "cpuset cpu"}, Version.V2, "unified", "unified"),
        (
            {
                "unified/cgroup.controllers": "hugetlb",
                "cpuset/cpuset.cpus": "",
                "cpu/cpu.shares": "",
                "cpuacct/cpuacct.usage": "",
            },
            Version.V1,
            "cpuset",
            "cpu",
        ),
        (
            {"cpuset,cpu/cpuset.cpus": "", "cpuset,cpu/cpu.shares": ""},
            Version.V1,
            "cpuset,cpu",
            "cpuset,cpu",
        ),
        (
            {"cpuset/cpuset.cpus": "", "cpu,cpuacct/cpu.shares": ""},
            Version.V1,
            "cpuset",
            "cpu,cpuacct",
        ),
        ({"cpuset/cpuset.cpus": ""}, Version.V1, "cpuset", None),
    ],
    ids=["v2", "v2 beside v1", "v1 beside v2", "v1 together", "v1 apart", "no cpu"],
)
def test_the_controllers_are_found(
    tmp_path: Path, made: dict[str, str], version: Version, cpuset: str, cpu: str | None
) -> None:
    for name, text in made.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = find_mounts(tmp_path)
    unified = tmp_path / cpuset if version is Version.V2 else None
    cpu_folder = tmp_path / cpu if cpu else None
    assert found == Mounts(version, tmp_path / cpuset, cpu_folder, unified, hugetlb=unified)


@pytest.mark.parametrize("name", ["nothing", "cgroup.controllers", "cpuset"])
def test_a_missing_cpuset_controller_has_its_own_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("cpu memory")
    with pytest.raises(NoCpusetError, match="--cgroupfs") as caught:
        find_mounts(tmp_path)
    assert caught.value.reason == "CpusetControllerMissing"


@pytest.mark.parametrize(("version", "named"), [(Version.V1, True), (Version.V2, False)])
def test_on_cgroup_v1_the_kubelet_may_have_refused_to_start(
    tmp_path: Path, version: Version, named: bool
) -> None:
    mounts = mounted(tmp_path, version)
    with pytest.raises(NoKubepodsError) as caught:
        find_naming(mounts)
    assert ("failCgroupV1: false" in str(caught.value)) == named


def test_the_driver_is_the_one_that_has_pods(tmp_path: Path) -> None:
    mounts, sets = mounted(tmp_path, Version.V2), ("", "", "0-1", "0")
    message = r"kubepods\.slice and .*kubepods: start the kubelet"
    with pytest.raises(NoKubepodsError, match=message) as caught:
        find_naming(mounts)
    assert caught.value.reason is Reason.KUBEPODS_NOT_FOUND
    put(tmp_path / "kubepods.slice", Version.V2, *sets)
    assert find_naming(mounts).driver is Driver.SYSTEMD
    put(tmp_path / "kubepods", Version.V2, *sets)
    put(tmp_path / "kubepods/podabc", Version.V2, *sets)
    assert find_naming(mounts).driver is Driver.CGROUPFS
    put(tmp_path / "x/kubepods", Version.V2, *sets)
    assert find_naming(mounts, "/x").root == "x/kubepods"


@pytest.mark.parametrize("version", Version)
def test_a_tree_is_read_with_what_was_asked_and_what_is_effective(
    tmp_path: Path, version: Version
) -> None:
    put(tmp_path / "k", version, "0-3", "0-1", "0-3", "0-1")
    put(tmp_path / "k/b", version, "", "", "", "")
    put(tmp_path / "k/b/c", version, "1,3", "1", "1", "1")
    put(tmp_path / "k/a", version, "2", "0", "2", "0")
    tree = Cgroupfs(mounted(tmp_path, version), "k").read()
    assert list(tree.cgroups) == ["k", "k/a", "k/b", "k/b/c"]
    one = MemSet([1])
    assert tree.cgroups["k/b/c"] == Cgroup("k/b/c", CpuSet([1, 3]), one, CpuSet([1]), one)
    assert tree.cgroups["k/b"].cpus == CpuSet()
    assert tree.children["k"] == ("k/a", "k/b")


def test_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "k", Version.V2, "", "", "0", "0")
    put(tmp_path / "elsewhere", Version.V2, "", "", "0", "0")
    (tmp_path / "k/link").symlink_to(tmp_path / "elsewhere")
    files = Cgroupfs(mounted(tmp_path, Version.V2), "k")
    assert list(files.read().cgroups) == ["k"]
    (tmp_path / "k/cpuset.cpus").unlink()
    (tmp_path / "k/cpuset.cpus").symlink_to(tmp_path / "elsewhere/cpuset.cpus")
    with pytest.raises(CgroupError, match="ELOOP"):
        files.write(Write("k", CpuSet([0]), Step.NARROW))


def test_a_cgroup_without_the_controller_is_left_out(tmp_path: Path) -> None:
    put(tmp_path / "k", Version.V2, "", "", "0", "0")
    (tmp_path / "k/inner").mkdir()
    assert list(Cgroupfs(mounted(tmp_path, Version.V2), "k").read().cgroups) == ["k"]


def test_a_missing_root_is_reported(tmp_path: Path) -> None:
    files = Cgroupfs(mounted(tmp_path, Version.V2), "kubepods")
    with pytest.raises(CgroupVanishedError, match="kubepods: there is no such cpuset cgroup"):
        files.read()


@pytest.mark.parametrize("path", ["other", "k/../other", "", "..", "kk"])
def test_paths_outside_the_tree_are_refused(tmp_path: Path, path: str) -> None:
    for name in ("k", "other", "kk"):
        put(tmp_path / name, Version.V2, "", "", "0", "0")
    files = Cgroupfs(mounted(tmp_path, Version.V2), "k")
    with pytest.raises(ValueError, match="not in the tree"):
        files.write(Write(path, CpuSet([0]), Step.NARROW))
    assert (tmp_path / "other/cpuset.cpus").read_text() == "\n"


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (CpuSet([0, 1, 4]), "cpuset.cpus", "0-1,4\n"),
        (MemSet([1]), "cpuset.mems", "1\n"),
        (CpuSet(), "cpuset.cpus", "\n"),
        (True, "cpuset.memory_migrate", "1\n"),
        (Quota(None, 50_000), "cpu.max", "max 50000\n"),
        (Quota(25_000), "cpu.max", "25000 100000\n"),
    ],
)
def test_each_value_goes_to_its_file(
    tmp_path: Path, value: CpuSet | MemSet | Quota | bool, name: str, text: str
) -> None:
    put(tmp_path / "k", Version.V2, "", "", "0", "0")
    (tmp_path / "k" / name).write_text("")
    Cgroupfs(mounted(tmp_path, Version.V2), "k").write(Write("k", value, Step.NARROW))
    assert (tmp_path / "k" / name).read_text() == text


def test_without_a_cpu_controller_there_are_no_limits(tmp_path: Path) -> None:
    put(tmp_path / "k", Version.V1, "0", "0", "0", "0")
    files = Cgroupfs(Mounts(Version.V1, tmp_path, None), "k")
    assert files.read_quota("k") is None
    with pytest.raises(CgroupError, match="there is no cpu controller"):
        files.write(Write("k", Quota(None), Step.GRANT))


def lost(tmp_path: Path) -> Cgroupfs:
    """A pod whose containers have no cpuset any more: one of them made a cgroup, as it may."""
    for name in ("kubepods", "kubepods/podx"):
        put(tmp_path / name, Version.V2, "0-3", "", "0-3", "0")
    (tmp_path / f"kubepods/podx/{'a' * 64}/inner").mkdir(parents=True)
    (tmp_path / "kubepods/podx/cgroup.subtree_control").write_text("")
    return Cgroupfs(mounted(tmp_path, Version.V2), "kubepods", CgroupNaming(Driver.CGROUPFS))


def test_a_container_whose_cpuset_was_taken_away_has_what_its_pod_has(tmp_path: Path) -> None:
    tree, path = lost(tmp_path).read(), f"kubepods/podx/{'a' * 64}"
    assert set(tree.cgroups) == {"kubepods", "kubepods/podx", path}
    assert tree.cgroups[path].effective_cpus == CpuSet(range(4))
    assert [one.path for one in tree.unread] == [path]
    assert "cgroup.subtree_control" in tree.unread[0].why


def test_a_write_to_it_has_its_pod_give_it_the_controller_again(tmp_path: Path) -> None:
    files, path = lost(tmp_path), f"kubepods/podx/{'a' * 64}"
    with pytest.raises(CgroupVanishedError):  # the file is not there: this is no kernel
        files.write(Write(path, CpuSet([2]), Step.GRANT))
    assert (tmp_path / "kubepods/podx/cgroup.subtree_control").read_text() == "+cpuset\n"


@pytest.mark.parametrize("version", Version)
def test_a_container_that_is_gone_is_only_gone(tmp_path: Path, version: Version) -> None:
    put(tmp_path / "kubepods", version, "0-3", "0", "0-3", "0")
    files = Cgroupfs(mounted(tmp_path, version), "kubepods", CgroupNaming(Driver.CGROUPFS))
    with pytest.raises(CgroupVanishedError):
        files.write(Write("kubepods/podx", CpuSet([2]), Step.GRANT))
    assert set(files.read().cgroups) == {"kubepods"}


def test_an_exclusive_cpuset_beside_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cset shield` makes it: on v1 no other cpuset beside it may have its CPUs."""
    for name, cpus, exclusive in (("kubepods", "0-1", 0), ("system", "0", 0), ("user", "2-3", 1)):
        put(tmp_path / name, Version.V1, cpus, "0", cpus, "0")
        (tmp_path / name / "cpuset.cpu_exclusive").write_text(f"{exclusive}\n")

    def refuse(path: str, text: str) -> None:
        raise error_of(path, text, OSError(errno.EINVAL, "as the kernel"))

    monkeypatch.setattr("numapin_enforcer.cgroups.cgroupfs.write_file", refuse)
    files = Cgroupfs(mounted(tmp_path, Version.V1), "kubepods")
    with pytest.raises(CgroupRefusedError, match=r"/user has CPUs 2-3 exclusively .*cset shield"):
        files.write(Write("kubepods", CpuSet(range(4)), Step.WIDEN))
    with pytest.raises(CgroupRefusedError, match="does not exist"):
        files.write(Write("kubepods", CpuSet([0, 9]), Step.WIDEN))
