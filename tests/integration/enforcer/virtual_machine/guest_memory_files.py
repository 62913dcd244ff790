"""What the kernel does with a cpuset controller that is taken away, and with huge pages (v2).

Not collected on the host: test_in_virtual_machine.py runs this.
"""

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.memory.binding import BindingTree, SavedMems
from numapin_enforcer.cgroups.memory.use import MemoryNotBoundError, parse_huge_stat
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.status.in_force.summary import summarize
from support.real.cgroups import RealCgroups, online_cpus

IDS = ("a" * 64, "b" * 64)
ALL = online_cpus()
OWN = CpuSet([max(ALL)])
SHARED = ALL - OWN
CONTAINER = ContainerAssignment(
    pod_uid="uid", namespace="default", pod="p", container="main", cpus=OWN, exclusive=True
)
SPEC = NodeAssignmentSpec(pools=Pools(reserved=SHARED, shared=SHARED), containers=(CONTAINER,))
HUGE_BYTES, HUGE_PAGES = 2 << 20, 24
HOLD = f"""
import mmap, time
huge = 0x40000  # MAP_HUGETLB
size = {HUGE_PAGES * HUGE_BYTES}
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | huge)
for page in range(0, size, {HUGE_BYTES}):
    held[page] = 1
print("held", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


def test_a_container_gets_back_a_controller_that_was_taken_away(real: RealCgroups) -> None:
    pod = real.naming.pod_path(Qos.GUARANTEED, CONTAINER.pod_uid)
    real.make(pod)
    own, sidecar = (f"{pod}/{one}" for one in IDS)
    for path in (own, sidecar):
        real.make(path)
        real.enter(path)
    files = Cgroupfs(real.mounts, real.root, real.naming)
    goal = AssignmentGoal(SPEC, discover(), dict(zip(IDS, ("main", "sidecar"), strict=True)))
    with CgroupWatch(real.mounts.cpuset, real.root) as watch:
        reconciler = Reconciler(files, TreeCache(files, watch), real.naming)
        reconciler.converge(goal, full_resync=True)
        assert files.read_effective_cpus(own) == OWN
        (real.mounts.cpuset / pod / "cgroup.subtree_control").write_text("-cpuset")
        lost = files.read()
        assert lost.cgroups[own].effective_cpus == lost.cgroups[sidecar].effective_cpus == ALL
        summary = summarize(SPEC, lost, goal.desired(lost, reconciler._cache), real.naming)
        assert [one.exclusive for one in summary.containers] == [False]
        done = reconciler.converge(goal, full_resync=True)
        assert {one.path for one in done.drifts} == {own, sidecar}
    assert files.read_effective_cpus(own) == OWN
    assert files.read_effective_cpus(sidecar) == SHARED


@contextmanager
def huge_pages_on_node_1(cgroup: Path) -> Iterator[None]:
    """A process of the cgroup holds them; it was put there before it allocated any."""
    wait = ("sh", "-c", f'read _; exec "{sys.executable}" -c "$0"', HOLD)
    with subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        (cgroup / "cgroup.procs").write_text(str(held.pid))
        assert held.stdin is not None
        assert held.stdout is not None
        held.stdin.write("go\n")
        held.stdin.flush()
        assert held.stdout.readline() == "held\n"
        try:
            yield
        finally:
            held.kill()


def pool(node: int, name: str) -> Path:
    folder = Path(f"/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB")
    return folder / name


def test_huge_pages_are_moved_only_where_enough_are_free(real: RealCgroups, tmp_path: Path) -> None:
    for above in ("", real.root.rpartition("/")[0], real.root):
        (real.mounts.cpuset / above / "cgroup.subtree_control").write_text("+hugetlb +cpuset")
    path = f"{real.root}/held"
    real.make(path)
    cgroup = real.mounts.cpuset / path
    (cgroup / "cpuset.mems").write_text("1")
    pool(1, "nr_hugepages").write_text(str(HUGE_PAGES))
    files = Cgroupfs(real.mounts, real.root)
    bind = Write(path, MemSet((0,)), Step.MOVE_MEMORY, may_block=True)

    def binding(most_bytes: float) -> BindingTree:
        return BindingTree(files, SavedMems(tmp_path), MoveGate(), Path("/sys"), most_bytes)

    with huge_pages_on_node_1(cgroup):
        found = parse_huge_stat(files.read_hugetlb_stat(path))
        assert found[HUGE_BYTES] == {0: 0, 1: HUGE_PAGES * HUGE_BYTES}
        pool(0, "nr_hugepages").write_text(str(HUGE_PAGES - 1))
        with pytest.raises(MemoryNotBoundError, match="only 46 MiB in huge pages"):
            binding(math.inf).write(bind)
        pool(0, "nr_hugepages").write_text(str(HUGE_PAGES))
        with pytest.raises(MemoryNotBoundError, match="at most 40 MiB are moved"):
            binding(40 << 20).write(bind)
        binding(math.inf).write(bind)
        assert pool(0, "free_hugepages").read_text() == "0\n"
        assert pool(1, "free_hugepages").read_text() == f"{HUGE_PAGES}\n"
        counted = parse_huge_stat(files.read_hugetlb_stat(path))
        assert counted[HUGE_BYTES] == found[HUGE_BYTES], "the kernel counts where they were"
    for node in (0, 1):
        pool(node, "nr_hugepages").write_text("0")
    (real.mounts.cpuset / real.root / "cgroup.subtree_control").write_text("-hugetlb")
    cgroup.rmdir()
