"""Where processes run: by their own affinity, and in which cgroup of their pod."""

import os
import secrets
from collections.abc import Iterator

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.kubepods.outside import find_outside
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import OutsideCgroup, Version, parent
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.writes.ordered import plan
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.in_force.population import STARTING_SECONDS, Population
from numapin_enforcer.status.in_force.summary import summarize
from support.real.cgroups import RealCgroups, memory_nodes, online_cpus


@pytest.fixture
def real() -> Iterator[RealCgroups]:
    with RealCgroups() as made:
        yield made


def test_no_process_stays_on_an_exclusive_cpu_by_setting_its_affinity(real: RealCgroups) -> None:
    """Narrowing the cgroup is enough; its processes need not be checked."""
    path, taken = f"{real.root}/choosy", CpuSet([max(online_cpus())])
    real.make(path)
    real.write(Write(path, online_cpus(), Step.PREPARE))
    real.write(Write(path, memory_nodes(), Step.PREPARE))
    real.enter(path)
    (pid,) = map(int, (real.mounts.cpuset / path / "cgroup.procs").read_text().split())
    os.sched_setaffinity(pid, taken)
    left = online_cpus() - taken
    real.write(Write(path, left, Step.NARROW))
    assert os.sched_getaffinity(pid) == set(left)
    with pytest.raises(OSError, match="Invalid argument"):
        os.sched_setaffinity(pid, taken)
    assert os.sched_getaffinity(pid) == set(left)


def test_a_container_whose_processes_are_in_the_sandboxs_cgroup_is_not_exclusive(
    real: RealCgroups,
) -> None:
    """As gVisor does: its containers' cgroups have the right sets and stay empty."""
    taken, pod = CpuSet([max(online_cpus())]), real.naming.pod_path(Qos.GUARANTEED, "uid")
    container, sandbox = f"{pod}/{'a' * 64}", f"{pod}/{'f' * 64}"
    for path in (pod, container, sandbox):
        real.make(path)
        if real.version is Version.V1:
            real.write(Write(path, online_cpus(), Step.PREPARE))
            real.write(Write(path, memory_nodes(), Step.PREPARE))
    real.enter(sandbox)
    one = ContainerAssignment(
        pod_uid="uid", namespace="d", pod="p", container="main", cpus=taken, exclusive=True
    )
    pool = online_cpus() - taken
    spec = NodeAssignmentSpec(pools=Pools(reserved=pool, shared=pool), containers=(one,))
    files, population = Cgroupfs(real.mounts, real.root), Population()
    wanted = desire(spec, real.read(), real.naming, {"a" * 64: "main", "f" * 64: ""}, discover())
    assert apply(plan(real.read(), wanted).writes, files).complete
    for now_seconds in (0.0, STARTING_SECONDS):
        population.update(real.read(), wanted, files.has_tasks, now_seconds, resynced=True)
    evidence = Evidence(deserted=population.deserted)
    summary = summarize(spec, real.read(), wanted, real.naming, evidence)
    assert [(found.cpus, found.exclusive) for found in summary.containers] == [(taken, False)]
    assert [lack.reason for lack in summary.lacks] == ["ProcessesElsewhere"]
    real.enter(container)
    population.update(real.read(), wanted, files.has_tasks, STARTING_SECONDS, resynced=True)
    assert (population.starting, population.deserted) == (frozenset(), frozenset())


def test_a_container_outside_of_the_kubelets_cgroups_is_found(real: RealCgroups) -> None:
    """As `crictl runp` makes it without a cgroup parent: `/k8s.io/<id>`."""
    id_ = secrets.token_hex(32)
    path = f"{parent(real.root)}/{id_}"
    real.make(path)
    try:
        if real.version is Version.V1:
            (real.mounts.cpuset / path / "cpuset.cpus").write_text("0")
            expected = CpuSet([0])
        else:
            expected = online_cpus()
        found = find_outside(real.mounts, real.root, {id_})
        assert found == {id_: OutsideCgroup(path, expected)}
    finally:
        real.remove(path)
