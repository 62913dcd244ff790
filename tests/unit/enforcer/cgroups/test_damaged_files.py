"""No content of a cgroup's files fails a pass in a way that does not name the file."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.cgroupfs import EFFECTIVE_FILES, Cgroupfs
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version

SOUND = {
    **dict.fromkeys(("cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus"), b"0-3\n"),
    **dict.fromkeys(("cpuset.mems", "cpuset.mems.effective", "cpuset.effective_mems"), b"0\n"),
    "cpu.max": b"100000 100000\n",
    "cpu.cfs_quota_us": b"-1\n",
    "cpu.cfs_period_us": b"100000\n",
}
SPOILED = st.dictionaries(
    st.sampled_from(sorted(SOUND)),
    st.binary(max_size=12)
    | st.sampled_from([b"", b"\n", b"0-", b"3-0", b"0-99999999", b"max", b"9" * 5000, b"\xb2"]),
    max_size=4,
)
VERSIONS = st.sampled_from(list(Version))


def write(folder: Path, spoiled: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in {**SOUND, **spoiled}.items():
        (folder / name).write_bytes(content)


@given(VERSIONS, SPOILED)
def test_a_cgroup_that_cannot_be_understood_has_what_its_parent_has(
    version: Version, spoiled: Mapping[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        mount = Path(made)
        write(mount / "kubepods", {})
        write(mount / "kubepods/pod", spoiled)
        files = Cgroupfs(Mounts(version, mount, mount), "kubepods")
        tree = files.read()
        assert tree.cgroups["kubepods"].cpus == CpuSet((0, 1, 2, 3))
        if not tree.unread:
            return
        assert tree.cgroups["kubepods/pod"].effective_cpus == CpuSet((0, 1, 2, 3))
        assert tree.cgroups["kubepods/pod"].effective_mems == MemSet((0,))
        (unread,) = tree.unread
        assert f"{mount}/kubepods/pod: it is not what the kernel writes: " in unread.why


@given(VERSIONS, SPOILED)
def test_a_limit_that_cannot_be_understood_names_its_cgroup(
    version: Version, spoiled: Mapping[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        mount = Path(made)
        write(mount / "kubepods", spoiled)
        said = ""
        try:
            Cgroupfs(Mounts(version, mount, mount), "kubepods").read_quota("kubepods")
        except CgroupError as refused:
            said = str(refused)
        assert not said or f"{mount}/kubepods" in said


@pytest.mark.parametrize("version", Version)
def test_effective_cpus_that_cannot_be_understood_name_their_file(
    tmp_path: Path, version: Version
) -> None:
    name = EFFECTIVE_FILES[version][0]
    write(tmp_path / "kubepods", {name: b"\xff"})
    files = Cgroupfs(Mounts(version, tmp_path, tmp_path), "kubepods")
    with pytest.raises(CgroupError, match=f"kubepods/{name}: it is not what the kernel writes"):
        files.read_effective_cpus("kubepods")
