"""Processes that set their own affinity, when their cgroup loses those CPUs."""

import os
from collections.abc import Iterator

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.write import Step, Write
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
