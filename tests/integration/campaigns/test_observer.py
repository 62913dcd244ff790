"""The observer of cgroup changes, on the kernel of this machine."""

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Change, recording, seconds_shared
from numapin_enforcer.cgroups.mounts import find_mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_lab.node.cgroups import LabCgroup, open_to_children

WAIT_SECONDS = 120.0


@pytest.fixture
def kubepods(root: None) -> Iterator[Path]:
    """A folder of pods that is ours, with everything its parent has."""
    cgroup = LabCgroup(f"numapin-test-{secrets.token_hex(4)}")
    cgroup.create()
    try:
        yield make(find_mounts(Path("/sys/fs/cgroup")).cpuset / cgroup.name / "kubepods")
    finally:
        cgroup.remove()


def make(folder: Path) -> Path:
    folder.mkdir()
    open_to_children(folder)
    return folder


def test_changes_are_reported_in_order(kubepods: Path) -> None:
    mounts = find_mounts(Path("/sys/fs/cgroup"))
    held = (kubepods / _effective(mounts.version)).read_text()
    everything = CpuSet.parse(held.strip())
    first = CpuSet(list(everything)[:1])
    if first == everything:
        pytest.skip("this machine has one CPU: no set can be narrowed")
    with recording(kubepods) as record, subprocess.Popen(["sleep", "1000"]) as sleeper:
        group = make(make(kubepods / "podu") / "owner")
        record.wait("owner", lambda one: one.cpus == everything, WAIT_SECONDS)
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        record.wait("owner", lambda one: one.runs, WAIT_SECONDS)
        (group / "cpuset.cpus").write_text(str(first))
        record.wait("owner", lambda one: one.cpus == first, WAIT_SECONDS)
        sleeper.kill()
        sleeper.wait()
        group.rmdir()
        record.wait("owner", _is_gone, WAIT_SECONDS)
    seen = [(one.cpus, one.runs) for one in record.groups["owner"] if one.cpus]
    known = [(everything, False), (everything, True), (first, True)]
    assert [one for one in seen if one in known][: len(known)] == known
    assert record.quality["samples"] > 3


def test_two_cgroups_that_share_a_cpu_are_measured(kubepods: Path) -> None:
    pod = make(kubepods / "podu")
    groups = [make(pod / name) for name in ("one", "other")]
    with recording(kubepods) as record:
        sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in groups]
        for group, sleeper in zip(groups, sleepers, strict=True):
            (group / "cgroup.procs").write_text(str(sleeper.pid))
            record.wait(group.name, lambda one: one.runs, WAIT_SECONDS)
        for group, sleeper in zip(groups, sleepers, strict=True):
            sleeper.kill()
            sleeper.wait()
            group.rmdir()
        record.wait("other", _is_gone, WAIT_SECONDS)
    one, other = (record.groups[name] for name in ("one", "other"))
    shared = seconds_shared(one, other, next(change.cpus for change in one if change.runs))
    begin = next(change.at for change in other if change.runs)
    end = next(change.at for change in one if change.at > begin and not change.runs)
    assert shared == pytest.approx(end - begin)


def _is_gone(change: Change) -> bool:
    return not change.cpus and not change.runs


def _effective(version: Version) -> str:
    return {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}[version]
