"""An owner's CPU that goes, offline or into somebody's partition: cgroup v2 says no word of it.

Not collected on the host: test_in_virtual_machine.py runs this.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.inotify import CgroupWatch
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree_cache import CgroupSnapshot
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import AssignmentGoal, Reconciler
from numapin_enforcer.status.summary import summarize
from support.real.cgroups import RealCgroups, online_cpus

PARTITION = Path("/sys/fs/cgroup/partition")
ID = "a" * 64
ALL = online_cpus()
OWN = CpuSet([max(ALL)])
SHARED = ALL - OWN
OWNER = ContainerAssignment(
    pod_uid="uid", namespace="default", pod="p", container="main", cpus=OWN, exclusive=True
)
SPEC = NodeAssignmentSpec(pools=Pools(reserved=SHARED, shared=SHARED), containers=(OWNER,))


@pytest.fixture
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


@pytest.fixture
def cgroup(real: RealCgroups) -> str:
    """The owner's, with a process in it."""
    pod = real.naming.pod_path(Qos.GUARANTEED, OWNER.pod_uid)
    real.make(pod)
    real.make(f"{pod}/{ID}")
    real.enter(f"{pod}/{ID}")
    return f"{pod}/{ID}"


@pytest.fixture
def told(real: RealCgroups, cgroup: str) -> Iterator[Callable[[], tuple[CpuSet, bool]]]:
    """Make a pass, and tell the owner's CPUs and whether it is alone there."""
    files = Cgroupfs(real.mounts, real.root)
    with CgroupWatch(real.mounts.cpuset, real.root) as watch:
        reconciler = Reconciler(files, CgroupSnapshot(files, watch), real.naming)

        def run() -> tuple[CpuSet, bool]:
            goal = AssignmentGoal(SPEC, discover(), {ID: OWNER.container})
            done = reconciler.converge(goal, full_resync=True)
            assert done.tree is not None
            (one,) = summarize(SPEC, done.tree, done.desired, real.naming).containers
            return one.cpus, one.exclusive

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


@pytest.mark.parametrize("gone", [offline, partitioned])
def test_an_exclusive_container_without_its_cpu_is_not_reported_exclusive(
    real: RealCgroups,
    cgroup: str,
    told: Callable[[], tuple[CpuSet, bool]],
    gone: Callable[[RealCgroups], AbstractContextManager[None]],
) -> None:
    """Its own CPU is still what is asked for; what it has is what is around it."""
    assert told() == (OWN, True)
    with gone(real):
        found = real.read().cgroups[cgroup]
        assert (found.cpus, found.effective_cpus) == (OWN, SHARED)
        assert told() == (SHARED, False)
    assert told() == (OWN, True)
