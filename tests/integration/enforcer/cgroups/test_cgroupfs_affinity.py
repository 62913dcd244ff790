"""Processes that inherit the CPU affinity of what started them, as this kernel has it.

The test's own process is the container runtime. From Linux 6.2 on a container keeps its affinity.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.naming import Qos
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.threads.check import IDLE_SECONDS, ThreadCheck
from numapin_enforcer.threads.reader import Process, ThreadReader
from support.fakes.manual_clock import ManualClock
from support.real.cgroups import RealCgroups, memory_nodes, online_cpus

CPUS = sorted(online_cpus())
FIRST, LAST = CpuSet(CPUS[:1]), CpuSet(CPUS[-1:])
REMEMBERS = tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 2)


class Pod:
    """A container in cgroups of this kernel, with all CPUs, started by a runtime with `FIRST`."""

    def __init__(self, real: RealCgroups) -> None:
        self.real = real
        self.reader = ThreadReader(real.mounts, Path("/proc"))
        self.clock = ManualClock()
        self.check = ThreadCheck(self.reader, self.clock)
        self.path = f"{real.naming.pod_path(Qos.BURSTABLE, 'c')}/{'c' * 64}"
        for path in (real.naming.qos_path(Qos.BURSTABLE), self.path.rpartition("/")[0], self.path):
            real.make(path)
            if real.version is Version.V1:
                real.write(Write(path, online_cpus(), Step.PREPARE))
                real.write(Write(path, memory_nodes(), Step.PREPARE))
        real.enter(self.path)
        (self.pid,) = self.reader.threads(self.path).ids
        # The kernel applies the CPUs of a cgroup, and what a thread remembers, when they change.
        real.write(Write(self.path, LAST, Step.NARROW))
        real.write(Write(self.path, online_cpus(), Step.WIDEN))

    @property
    def cpus(self) -> CpuSet:
        return CpuSet(os.sched_getaffinity(self.pid))

    def found(self) -> dict[str, str]:
        """What two looks find while no CPU is exclusive."""
        for _ in range(2):
            self.clock.stand_still(IDLE_SECONDS)
            self.check.look(self.real.read(), {}, self.real.naming, resynced=True)
        return {one.path: str(one.cpus) for one in self.check.inherited}


@pytest.fixture
def pod() -> Iterator[Pod]:
    with RealCgroups() as real:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, FIRST)
        try:
            yield Pod(real)
        finally:
            os.sched_setaffinity(0, before)


def test_a_container_inherits_the_affinity_of_its_runtime(pod: Pod) -> None:
    assert pod.cpus == (FIRST if REMEMBERS else online_cpus())
    assert pod.found() == ({pod.path: str(FIRST)} if REMEMBERS else {})


@pytest.mark.parametrize("chosen", [lambda: LAST, online_cpus], ids=["other", "all"])
def test_a_container_that_chose_its_cpus_is_not_found(
    pod: Pod, chosen: Callable[[], CpuSet]
) -> None:
    os.sched_setaffinity(pod.pid, chosen())
    assert pod.cpus == chosen()
    assert pod.found() == {}


def test_a_process_is_read_with_its_parent(pod: Pod) -> None:
    assert pod.reader.process(pod.pid) == Process(pod.pid, os.getpid(), 1)
    assert pod.reader.process(0) is None
