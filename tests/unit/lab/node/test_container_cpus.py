"""What the lab reads of every container from the kernel."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.container_cpus import ContainerCpus, container_names, read_containers

POD = {
    "metadata": {"uid": "u-1", "namespace": "default", "name": "web"},
    "status": {
        "initContainerStatuses": [{"name": "prepare", "containerID": "containerd://1111"}],
        "containerStatuses": [
            {"name": "main", "containerID": "containerd://2222"},
            {"name": "waiting"},
        ],
    },
}


def test_containers_are_named_by_the_pods_status() -> None:
    assert container_names([POD, {"metadata": {}}]) == {"1111": "prepare", "2222": "main"}


@pytest.mark.parametrize("effective", ["cpuset.effective_cpus", "cpuset.cpus.effective"])
def test_every_cgroup_of_a_pod_is_seen(
    effective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cgroup"
    for name, cpus in (("2222", "1\n"), ("9999", "0-1\n")):
        folder = root / "kubepods" / "burstable" / "podu-1" / name
        folder.mkdir(parents=True)
        (folder / effective).write_text(cpus)
        (folder / "cgroup.procs").write_text("")
    (root / "cpuset.cpus").write_text("")
    monkeypatch.setattr(LabCgroup, "folders", lambda _: [tmp_path / "freezer", root])
    assert read_containers(LabCgroup("x"), [POD]) == [
        ContainerCpus("u-1", "default", "web", "(sandbox)", CpuSet.parse("0-1"), {}),
        ContainerCpus("u-1", "default", "web", "main", CpuSet.parse("1"), {}),
    ]
