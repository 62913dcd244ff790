"""How this machine's kernel refuses writes, and how the refusal is reported."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import (
    CgroupReadOnlyError,
    CgroupRefusedError,
    CgroupVanishedError,
)
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.write import Step, Write
from support.real.cgroups import RealCgroups, memory_nodes, online_cpus


@pytest.fixture(scope="module")
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        made.make(f"{made.root}/pod")
        yield made


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (CpuSet.from_mask(1 << 60_000), "cannot have .*ERANGE"),
        (MemSet([1023]), "(does not exist .*EINVAL|cannot have .*ERANGE)"),
    ],
)
def test_a_set_that_the_machine_lacks_is_reported_with_file_and_value(
    real: RealCgroups, value: CpuSet | MemSet, meaning: str
) -> None:
    message = f"writing '{value}' to /sys.*pod/cpuset.*{meaning}"
    with pytest.raises(CgroupRefusedError, match=message):
        real.write(Write(f"{real.root}/pod", value, Step.GRANT))


def test_an_emptied_set_is_reported(real: RealCgroups) -> None:
    path = f"{real.root}/busy"
    real.make(path)
    real.write(Write(path, online_cpus(), Step.GRANT))
    real.write(Write(path, memory_nodes(), Step.GRANT))
    real.enter(path)
    with pytest.raises(CgroupRefusedError, match="empty while the cgroup has tasks"):
        real.write(Write(path, CpuSet(), Step.GRANT))


def test_a_removed_cgroup_is_distinguished_from_a_refused_write(real: RealCgroups) -> None:
    with pytest.raises(CgroupVanishedError, match="the cgroup is gone"):
        real.write(Write(f"{real.root}/gone", online_cpus(), Step.GRANT))


@pytest.fixture
def read_only(real: RealCgroups, tmp_path: Path) -> Iterator[Cgroupfs]:
    """The same cgroups through a read-only mount."""
    subprocess.run(["mount", "--bind", real.mounts.cpuset, tmp_path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", tmp_path], check=True)
        yield Cgroupfs(Mounts(real.version, tmp_path, None), real.root)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_read_only_cgroups_are_read_and_reported(real: RealCgroups, read_only: Cgroupfs) -> None:
    assert read_only.read() == real.read()
    write = Write(f"{real.root}/pod", online_cpus(), Step.GRANT)
    with pytest.raises(CgroupReadOnlyError, match="mounted read-only") as caught:
        read_only.write(write)
    assert caught.value.reason == "CgroupsReadOnly"
    outcome = apply((write, write, write), read_only)
    assert (len(outcome.failed), len(outcome.skipped)) == (1, 2)
