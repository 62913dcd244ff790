"""On this machine's kernel: a new pod leaves exclusive CPUs at its event, before any plan."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import Reconciler
from support.real.cgroups import RealCgroups, online_cpus
from support.values.specs_and_trees import spec

ID = "a" * 64


def make(real: RealCgroups, path: str) -> Path:
    """A cgroup as the kubelet makes it: on v1 with its parent's sets."""
    real.make(path)
    folder = real.mounts.cpuset / path
    if real.version is Version.V1:
        for name in ("cpuset.mems", "cpuset.cpus"):
            (folder / name).write_text((folder.parent / name).read_text())
    return folder


@pytest.mark.skipif(len(online_cpus()) < 2, reason="an exclusive CPU needs a second one")
def test_a_new_pod_leaves_exclusive_cpus_at_its_event() -> None:
    topology = discover()
    first, own = CpuSet([min(topology.online)]), topology.online - CpuSet([min(topology.online)])
    container = ContainerAssignment(
        pod_uid="owner", namespace="d", pod="p", container="c", cpus=own, exclusive=True
    )
    with RealCgroups() as real, CgroupWatch(real.mounts.cpuset, real.root) as watch:
        files = Cgroupfs(real.mounts, real.root)
        reconciler = Reconciler(files, TreeCache(files, watch), real.naming)
        for path in ("podowner", f"podowner/{ID}"):
            make(real, f"{real.root}/{path}")
        goal = AssignmentGoal(spec(container, shared=str(first)), topology, {ID: "c"})
        assert reconciler.converge(goal, full_resync=True).complete
        new = make(real, f"{real.root}/podnew")
        assert watch.collect()
        assert watch.collected.appeared == (f"{real.root}/podnew",)
        assert reconciler.first_writes.fence_new(watch.collected, {})
        assert (new / "cpuset.cpus").read_text().strip() == str(first)
        (new / "cpuset.cpus").write_text(str(topology.online))
        assert watch.collect()
        assert reconciler.first_writes.fence_new(watch.collected, {})
        assert (new / "cpuset.cpus").read_text().strip() == str(first)
        done = reconciler.converge(goal, full_resync=False)
        assert done.complete
        assert done.drifts == ()
