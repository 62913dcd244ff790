"""An exclusive CPU goes offline or into a partition of others: cgroup v2 reports neither.

Not collected on the host: test_in_virtual_machine.py runs this.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.status.in_force.summary import summarize
from support.real.cgroups import RealCgroups, online_cpus

PARTITION = Path("/sys/fs/cgroup/partition")
ID = "a" * 64
ALL = online_cpus()
OWN = CpuSet([max(ALL)])
SHARED = ALL - OWN
CONTAINER = ContainerAssignment(
    pod_uid="uid", namespace="default", pod="p", container="main", cpus=OWN, exclusive=True
)
SPEC = NodeAssignmentSpec(pools=Pools(reserved=SHARED, shared=SHARED), containers=(CONTAINER,))


@pytest.fixture
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


@pytest.fixture
def cgroup(real: RealCgroups) -> str:
    """The exclusive container's cgroup, with a process in it."""
    pod = real.naming.pod_path(Qos.GUARANTEED, CONTAINER.pod_uid)
    real.make(pod)
    real.make(f"{pod}/{ID}")
    real.enter(f"{pod}/{ID}")
    return f"{pod}/{ID}"


@pytest.fixture
def reported(
    real: RealCgroups, cgroup: str
) -> Iterator[Callable[[], tuple[CpuSet, bool, list[str]]]]:
    """Makes a pass; returns the reported CPUs, whether they are exclusive, and why they are not."""
    files = Cgroupfs(real.mounts, real.root)
    with CgroupWatch(real.mounts.cpuset, real.root) as watch:
        reconciler = Reconciler(files, TreeCache(files, watch), real.naming)

        def run() -> tuple[CpuSet, bool, list[str]]:
            goal = AssignmentGoal(SPEC, discover(), {ID: CONTAINER.container})
            done = reconciler.converge(goal, full_resync=True)
            assert done.tree is not None
            summary = summarize(SPEC, done.tree, done.desired, real.naming)
            (one,) = summary.containers
            return one.cpus, one.exclusive, [str(lack.reason) for lack in summary.lacks]

        yield run


@contextmanager
def offline(real: RealCgroups) -> Iterator[None]:
    real.set_online(SHARED)
    yield
    real.set_online(ALL)


@contextmanager
def partitioned(_: RealCgroups) -> Iterator[None]:
    PARTITION.mkdir()
    (PARTITION / "cpuset.cpus").write_text(str(OWN))
    kind = PARTITION / "cpuset.cpus.partition"
    kind.write_text("root")
    assert kind.read_text().strip() == "root"
    yield
    kind.write_text("member")
    PARTITION.rmdir()


@pytest.mark.parametrize(
    ("gone", "reason"), [(offline, "CPUsOffline"), (partitioned, "CPUsWithheld")]
)
def test_an_exclusive_container_without_its_cpu_is_not_reported_exclusive(
    real: RealCgroups,
    cgroup: str,
    reported: Callable[[], tuple[CpuSet, bool, list[str]]],
    gone: Callable[[RealCgroups], AbstractContextManager[None]],
    reason: str,
) -> None:
    """cpuset.cpus still has its own CPU; the effective set is the parent's."""
    assert reported() == (OWN, True, [])
    with gone(real):
        found = real.read().cgroups[cgroup]
        assert (found.cpus, found.effective_cpus) == (OWN, SHARED)
        assert reported() == (SHARED, False, [reason])
    assert reported() == (OWN, True, [])
