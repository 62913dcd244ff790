"""Threads of io_uring do not keep to their cgroup: what this kernel does, and what follows."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_campaigns.tenants.io_threads import IoThreads
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.threads.check import ThreadCheck
from numapin_enforcer.threads.reader import ThreadReader
from support.real.cgroups import RealCgroups, memory_nodes, online_cpus
from support.real.io_threads import why_without

pytestmark = pytest.mark.skipif(bool(why_without()), reason=why_without())

CPUS = sorted(online_cpus())
FIRST, LAST = CpuSet(CPUS[:1]), CpuSet(CPUS[-1:])
NAMES = {"a" * 64: "one", "b" * 64: "two", "c" * 64: "web"}
four_cpus = pytest.mark.run_by("test_in_virtual_machine.py", len(CPUS) >= 4)


def cpus_of(thread: int) -> CpuSet:
    return CpuSet(os.sched_getaffinity(thread))


class Node:
    """Three containers in cgroups of this kernel: two that may be exclusive, and a shared one."""

    def __init__(self, real: RealCgroups) -> None:
        self.real = real
        self.one, self.two = (self._make(Qos.GUARANTEED, uid, uid[0] * 64) for uid in ("a", "b"))
        self.web = self._make(Qos.BURSTABLE, "c", "c" * 64)
        files = Cgroupfs(real.mounts, real.root, real.naming)
        self.watch = CgroupWatch(real.mounts.cpuset, real.root, real.naming)
        self.reconciler = Reconciler(files, TreeCache(files, self.watch), real.naming)
        self.check = ThreadCheck(ThreadReader(real.mounts, Path("/proc")))
        self.topology = discover(Path("/sys"), Path("/proc"))

    def folder(self, path: str) -> Path:
        return self.real.mounts.cpuset / path

    def enforce(self, shared: CpuSet, **exclusive: CpuSet) -> dict[str, str]:
        """A pass with a resync; returns the CPUs of wide threads by cgroup."""
        uids = {"one": "a", "two": "b"}
        containers = tuple(
            ContainerAssignment(
                pod_uid=uids[name],
                namespace="d",
                pod=name,
                container=name,
                cpus=cpus,
                exclusive=True,
            )
            for name, cpus in exclusive.items()
        )
        pools = Pools(reserved=FIRST, shared=shared)
        goal = AssignmentGoal(
            NodeAssignmentSpec(pools=pools, containers=containers), self.topology, NAMES
        )
        done = self.reconciler.converge(goal, full_resync=True)
        assert done.tree is not None
        naming = self.real.naming
        paths = self.check.look(done.tree, done.desired, naming, resynced=True)
        if paths:
            done = self.reconciler.set_again(goal, done, paths)
            assert done.tree is not None
            self.check.look_again(done.tree)
        assert (done.complete, done.failures) == (True, ())
        return {one.path: str(one.cpus) for one in self.check.wide}

    def _make(self, qos: Qos, uid: str, id_: str) -> str:
        pod = self.real.naming.pod_path(qos, uid)
        above = [self.real.naming.qos_path(qos)] if qos is not Qos.GUARANTEED else []
        for path in (*above, pod, f"{pod}/{id_}"):
            self.real.make(path)
            if self.real.version is Version.V1:
                self.real.write(Write(path, online_cpus(), Step.PREPARE))
                self.real.write(Write(path, memory_nodes(), Step.PREPARE))
        self.real.enter(f"{pod}/{id_}")
        return f"{pod}/{id_}"


@pytest.fixture
def node() -> Iterator[Node]:
    with RealCgroups() as real:
        made = Node(real)
        yield made
        made.watch.close()


def test_a_new_worker_has_the_cpus_that_the_first_ring_began_with(
    node: Node, tmp_path: Path
) -> None:
    """Only the next change of the cgroup's set reaches it; the same set once more does not.

    Up to Linux 6.2 it has only those in the NUMA node of the thread that asks.
    """
    real = node.real
    with IoThreads(tmp_path, node.folder(node.web)) as program:
        program.do("ring")
        old = program.worker()
        real.write(Write(node.web, FIRST, Step.NARROW))
        assert cpus_of(old) == FIRST
        new = program.worker()
        wide = cpus_of(new)
        assert wide > FIRST
        real.write(Write(node.web, FIRST, Step.NARROW))
        wide = cpus_of(new)
        assert wide > FIRST
        real.write(Write(node.web, LAST, Step.NARROW))
        real.write(Write(node.web, FIRST, Step.NARROW))
        assert cpus_of(new) == FIRST


def test_a_polling_thread_has_all_cpus_from_its_start(node: Node, tmp_path: Path) -> None:
    node.real.write(Write(node.web, FIRST, Step.NARROW))
    with IoThreads(tmp_path, node.folder(node.web)) as program:
        poller = program.poller()
        assert cpus_of(poller) == online_cpus()
        node.real.write(Write(node.web, LAST, Step.NARROW))
        assert cpus_of(poller) == LAST


def test_threads_of_a_neighbour_are_set_again_and_named_when_they_come_back(
    node: Node, tmp_path: Path
) -> None:
    """With two CPUs no other set is possible for the neighbour, so it is named at once."""
    shared = online_cpus() - LAST
    may_be_set = len(shared) > 1
    with IoThreads(tmp_path, node.folder(node.web)) as program:
        program.do("ring")
        program.worker()
        assert node.enforce(shared, one=LAST) == {}, "the set has just changed for all threads"
        worker, poller = program.worker(), program.poller()
        assert cpus_of(poller) >= LAST
        found = node.enforce(shared, one=LAST)
        assert found == ({} if may_be_set else {node.web: str(LAST)})
        now = shared if may_be_set else online_cpus()
        assert (cpus_of(worker), cpus_of(poller)) == (now, now)
        program.poller()
        assert node.enforce(shared, one=LAST) == {node.web: str(LAST)}


def test_the_name_of_a_thread_is_no_evidence(node: Node, tmp_path: Path) -> None:
    shared = online_cpus() - LAST
    with IoThreads(tmp_path, node.folder(node.web)) as program:
        program.do("name iou-wrk-\x1b[2J")
        for _ in range(2):
            assert node.enforce(shared, one=LAST) == {}
        reader = ThreadReader(node.real.mounts, Path("/proc"))
        assert reader.name(program.pid) == "iou-wrk-\\x1b[2J"


@four_cpus
@pytest.mark.parametrize("then", ["moved", "shrunk"])
def test_workers_of_an_exclusive_container_on_its_old_cpus(
    node: Node, tmp_path: Path, then: str
) -> None:
    first, third, fourth = (CpuSet([cpu]) for cpu in (CPUS[0], CPUS[-2], CPUS[-1]))
    pool = online_cpus() - third - fourth
    before = {"moved": third, "shrunk": third | fourth}[then]
    after, other = {"moved": (fourth, third), "shrunk": (third, fourth)}[then]
    with IoThreads(tmp_path, node.folder(node.one)) as program:
        node.enforce(online_cpus() - before, one=before)
        program.do("ring")
        program.worker()
        node.enforce(pool, one=after)
        assert node.enforce(pool, one=after, two=other) == {}
        worker = program.worker()
        assert cpus_of(worker) == before
        assert node.enforce(pool, one=after, two=other) == {}
        assert cpus_of(worker) == after, "set again"
        program.worker()
        assert node.enforce(pool, one=after, two=other) == {node.one: str(other)}
    assert first <= pool


@pytest.mark.parametrize("count", [1, 3000])
def test_threads_are_listed_whole_and_sorted(node: Node, tmp_path: Path, count: int) -> None:
    reader = ThreadReader(node.real.mounts, Path("/proc"))
    with IoThreads(tmp_path, node.folder(node.web)) as program:
        program.do(f"threads {count}")
        listed = reader.threads(node.web)
        assert len(listed.ids) >= count + 1
        assert list(listed.ids) == sorted(set(listed.ids))
        assert (listed.hidden, listed.cut) == (False, False)
        assert reader.mask(program.pid) == cpus_of(program.pid).mask
    assert reader.mask(program.pid) is None
    assert reader.name(program.pid) == ""
    assert reader.problem == ""
