"""On this machine's kernel: what is inside containers and not read keeps no CPU from others."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.nested import nesting
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import Reconciler
from support.real.cgroups import RealCgroups, online_cpus
from support.values.specs_and_trees import spec

OWNER, TENANT = "a" * 64, "b" * 64


def make(real: RealCgroups, path: str) -> None:
    """A cgroup as runc makes it: on v1 with its parent's sets."""
    real.make(path)
    folder = real.mounts.cpuset / path
    for name in ("cpuset.mems", "cpuset.cpus") if real.version is Version.V1 else ():
        (folder / name).write_text((folder.parent / name).read_text())


@pytest.mark.skipif(len(online_cpus()) < 2, reason="an exclusive CPU needs a second one")
def test_a_container_leaves_its_cpus_whatever_is_inside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the CPUs that it keeps are none of those that a nested cgroup has."""
    monkeypatch.setattr(nesting, "MOST_NESTED_ON_NODE", 4)
    topology = discover()
    first, last = min(topology.online), max(topology.online)
    with RealCgroups() as real, CgroupWatch(real.mounts.cpuset, real.root, real.naming) as watch:
        files = Cgroupfs(real.mounts, real.root, real.naming)
        reconciler = Reconciler(files, TreeCache(files, watch), real.naming)
        tenant = f"{real.root}/podtenant/{TENANT}"
        paths = ["podowner", f"podowner/{OWNER}", "podtenant", f"podtenant/{TENANT}"]
        for path in paths:
            make(real, f"{real.root}/{path}")
        inside = [f"{tenant}/n{number}" for number in range(12)]
        inside += [f"{inside[number]}/below" for number in range(6)]
        for number, path in enumerate(inside):
            make(real, path)
            if number >= 9:
                (real.mounts.cpuset / path / "cpuset.cpus").write_text(str(last))
        owner = ContainerAssignment(
            pod_uid="owner",
            namespace="d",
            pod="p",
            container="c",
            cpus=CpuSet([last]),
            exclusive=True,
        )
        shared = topology.online - owner.cpus
        goal = AssignmentGoal(spec(owner, shared=str(shared)), topology, {OWNER: "c"})
        done = reconciler.converge(goal, full_resync=True)
        assert (done.complete, done.failures) == (True, ())
        assert done.tree is not None
        assert len(done.tree.unread) == 1
        assert done.tree.cgroups[tenant].effective_cpus == shared
        for path in inside:
            found = files.read_effective_cpus(path)
            assert found <= shared, path
        assert first in shared
