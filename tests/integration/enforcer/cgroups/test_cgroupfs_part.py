"""Administrators give kubepods, or the cgroup above it, a part of this machine's CPUs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Version, parent
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.reconciler import Reconciler
from support.real.cgroups import CGROUPFS, RealCgroups, memory_nodes, online_cpus

ID = "a" * 64
ALL = online_cpus()
PART = CpuSet(sorted(ALL)[len(ALL) // 2 :])
OWN, REST = CpuSet([max(ALL)]), ALL - CpuSet([max(ALL)])


class Node:
    """The parts of an enforcer that read the machine and write cgroups."""

    def __init__(self, real: RealCgroups, watch: CgroupWatch) -> None:
        self.real, self.above = real, parent(real.root)
        files = Cgroupfs(real.mounts, real.root)
        self._reconciler = Reconciler(files, TreeCache(files, watch), real.naming)
        finder = KubepodsFinder(CGROUPFS, self.above)
        self.machine = Machine(Path("/sys"), Path("/proc"), finder.allowed)

    def give(self, path: str, cpus: CpuSet) -> None:
        (self.real.mounts.cpuset / path / "cpuset.cpus").write_text(f"{cpus}\n")

    def asked(self, path: str) -> str:
        return (self.real.mounts.cpuset / path / "cpuset.cpus").read_text().strip()

    def enforce(self, shared: CpuSet, own: CpuSet) -> Converged:
        """A pass; nothing may be refused, and the next one must have nothing to write."""
        one = ContainerAssignment(
            pod_uid="uid", namespace="d", pod="p", container="main", cpus=own, exclusive=bool(own)
        )
        pools = Pools(reserved=shared, shared=shared)
        spec = NodeAssignmentSpec(pools=pools, containers=(one,) if own else ())
        goal = AssignmentGoal(spec, self.machine.topology, {ID: "main"})
        done = self._reconciler.converge(goal, full_resync=True)
        assert done.failures == ()
        assert self._reconciler.converge(goal, full_resync=True).made == ()
        return done


@pytest.fixture
def node() -> Iterator[Node]:
    """A node with a container that has a process."""
    with RealCgroups() as real, CgroupWatch(real.mounts.cpuset, real.root) as watch:
        pod = real.naming.pod_path(Qos.GUARANTEED, "uid")
        for path in (pod, f"{pod}/{ID}"):
            real.make(path)
            if real.version is Version.V1:
                (real.mounts.cpuset / path / "cpuset.cpus").write_text(str(ALL))
                (real.mounts.cpuset / path / "cpuset.mems").write_text(str(memory_nodes()))
        real.enter(f"{pod}/{ID}")
        yield Node(real, watch)


def test_what_the_cgroup_above_kubepods_has_is_the_node(node: Node) -> None:
    root = node.real.root
    if node.real.version is Version.V1:  # the kernel wants children narrowed first
        for path in reversed([*node.real.read().cgroups]):
            node.give(path, PART)
    node.give(node.above, PART)
    assert not node.machine.rescan()
    assert node.machine.rescan(pages=True)
    assert (node.machine.topology.online, node.machine.topology.withheld) == (PART, ALL - PART)
    assert f"planned with CPU {PART} of {ALL}: cgroup {node.above} has" in node.machine.limits
    assert node.enforce(PART, CpuSet()).complete
    assert node.asked(node.above) == str(PART)
    node.give(node.above, ALL)
    assert node.machine.rescan(pages=True)
    assert not node.machine.limits
    assert node.enforce(REST, OWN).complete
    assert node.real.read().cgroups[root].effective_cpus == ALL


def test_what_kubepods_has_is_the_node_on_v2_and_given_back_on_v1(node: Node) -> None:
    """On v1 the kernel itself takes CPUs that go offline out of it, and never gives them back."""
    root = node.real.root
    assert node.enforce(REST, OWN).complete
    if node.real.version is Version.V1:
        for path in reversed([*node.real.read().cgroups]):
            node.give(path, REST)
        assert node.enforce(REST, OWN).complete
        assert node.asked(root) == str(ALL)
        return
    node.give(root, REST)
    done = node.enforce(REST, OWN)  # what was assigned before
    assert (done.complete, node.asked(root)) == (False, str(REST))
    assert node.machine.rescan(pages=True)
    assert node.machine.topology.online == REST
    assert f"cgroup {root} has no others (cpuset.cpus, or AllowedCPUs=" in node.machine.limits
    assert node.enforce(REST, CpuSet()).complete
    assert node.asked(root) == str(REST)
    node.give(root, ALL)  # the kernel refuses an empty set while a process runs below
    assert node.machine.rescan(pages=True)
    assert node.enforce(REST, OWN).complete
