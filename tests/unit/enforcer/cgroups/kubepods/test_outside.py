"""The cgroups of containers outside of the kubelet's tree."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.kubepods import outside
from numapin_enforcer.cgroups.kubepods.outside import find_outside
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import OutsideCgroup, Version

A, B, C, D = (letter * 64 for letter in "abcd")


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    cgroups = {
        "": "0-3",
        f"k8s.io/{A}": "0-1",
        f"system.slice/docker-{B}.scope": None,
        "system.slice": "2-3",
        f"kubepods.slice/pod/cri-containerd-{C}.scope": "0",
        f"other/{D}": "0",
    }
    for path, cpus in cgroups.items():
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        if cpus is not None:
            (tmp_path / path / "cpuset.cpus.effective").write_text(cpus)
    return Mounts(Version.V2, tmp_path, tmp_path)


def test_containers_are_found_by_id_wherever_they_are_but_in_the_kubelets_tree(
    mounts: Mounts,
) -> None:
    assert find_outside(mounts, "kubepods.slice", {A, B, C}) == {
        A: OutsideCgroup(f"k8s.io/{A}", CpuSet([0, 1])),
        B: OutsideCgroup(f"system.slice/docker-{B}.scope", CpuSet([2, 3])),
    }


def test_the_search_is_bounded(mounts: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "MOST_FOLDERS", 1)
    assert find_outside(mounts, "kubepods.slice", {A}) == {}
