"""Which NUMA nodes lack memory that containers were promised there."""

from collections.abc import Mapping

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain import ContainerAssignment, MemoryBlock, NodeAssignmentSpec
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.memory.promised import (
    LOOK_SECONDS,
    LOOKS_TO_CHANGE,
    MOST_READ,
    NumaUse,
    PromisedMemory,
)
from numapin_enforcer.cgroups.memory.use import parse_available
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver

MIB = 1 << 20
NAMING = CgroupNaming(Driver.CGROUPFS)
MEMINFO = """\
Node 0 MemTotal:       1000000 kB
Node 0 MemFree:            100 kB
Node 0 Active:            9999 kB
Node 0 Active(anon):      9999 kB
Node 0 Inactive(anon):    9999 kB
Node 0 Active(file):        10 kB
Node 0 Inactive(file):       1 kB
Node 0 Dirty:             9999 kB
Node 0 KReclaimable:      1000 kB
Node 0 SReclaimable:      9999 kB
"""


def entry(name: str, mib: int, *nodes: int, resource: str = "memory") -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=name,
        namespace="default",
        pod=name,
        container="c",
        mems=MemSet(nodes),
        memory=(MemoryBlock(tuple(nodes), resource, mib * MIB),),
    )


class Kernel:
    """What is available on each NUMA node, and what cgroups have there, in MiB."""

    def __init__(self, available: Mapping[int, int], **used: Mapping[int, int]) -> None:
        self.available_mib, self.used = dict(available), dict(used)
        self.memory = PromisedMemory(self.available, 4096)
        self.now_seconds = 0.0
        self.reads = 0

    def available(self, node: int) -> int | None:
        return None if node not in self.available_mib else self.available_mib[node] * MIB

    def numa_stat(self, path: str) -> str:
        self.reads += 1
        name = path.rpartition("/")[2]
        if name not in self.used:
            raise CgroupVanishedError(path, "", 2, "gone")
        return "anon " + " ".join(f"N{node}={mib * MIB}" for node, mib in self.used[name].items())

    def look(self, *containers: ContainerAssignment, times: int = 1) -> str:
        cgroups = {one.key: f"kubepods/{one.pod_uid}" for one in containers}
        spec = NodeAssignmentSpec(containers=containers)
        for _ in range(times):
            self.memory.look(spec, cgroups, NAMING, self.numa_stat, self.now_seconds)
            self.now_seconds += LOOK_SECONDS
        return self.memory.note


def test_what_is_free_or_could_be_freed() -> None:
    assert parse_available(MEMINFO) == 1111 * 1024


def test_promised_unused_and_what_others_have() -> None:
    kernel = Kernel(
        {0: 500, 1: 700},
        a={0: 300, 1: 9},
        b={1: 5000},
        burstable={0: 40, 1: 50},
        besteffort={1: 6},
    )
    kernel.look(entry("a", 1000, 0), entry("new", 200, 0), entry("b", 100, 1))
    assert kernel.memory.found == (
        NumaUse(0, 1200 * MIB, 900 * MIB, 500 * MIB, 40 * MIB, 0),
        NumaUse(1, 100 * MIB, 0, 700 * MIB, 50 * MIB, 6 * MIB),
    )


@pytest.mark.parametrize(
    ("promised", "available", "is_short"),
    [
        pytest.param(1000, 1000, False, id="all of it"),
        pytest.param(1000, 936, False, id="less than the least missing"),
        pytest.param(1000, 935, True, id="more"),
        pytest.param(64_000, 63_000, False, id="a 64th of much is what the kernel keeps"),
        pytest.param(64_000, 62_999, True, id="more than a 64th"),
    ],
)
def test_how_much_must_be_missing(promised: int, available: int, is_short: bool) -> None:
    kernel = Kernel({0: available}, a={}, burstable={0: 7})
    assert bool(kernel.look(entry("a", promised, 0), times=LOOKS_TO_CHANGE)) is is_short


def test_a_moment_names_nothing_and_a_node_stays_named_for_some_looks() -> None:
    kernel, a = Kernel({0: 100, 1: 0}, a={}, burstable={0: 2048}), entry("a", 1000, 0)
    assert kernel.look(a) == ""
    note = kernel.look(a)
    assert "NUMA node 0: 1000 MiB not used yet, 100 MiB can be had; Burstable pods" in note
    assert "have 2 GiB there, BestEffort pods 0 B" in note
    kernel.available_mib[0] = 150
    assert kernel.look(a, times=5) == note  # the same words: each change is a write
    kernel.available_mib[0] = 2000
    assert kernel.look(a) == note
    assert kernel.look(a) == ""


def test_what_is_given_back_is_forgotten() -> None:
    kernel = Kernel({0: 100}, a={})
    assert kernel.look(entry("a", 1000, 0), times=2)
    assert kernel.look(times=2) == ""
    assert kernel.memory.found == ()


def test_huge_pages_and_memory_on_several_numa_nodes_are_not_counted() -> None:
    kernel = Kernel({0: 0, 1: 0})
    pages = entry("a", 4096, 0, resource="hugepages-2Mi")
    assert kernel.look(pages, entry("b", 4096, 0, 1), times=2) == ""
    assert kernel.memory.found == ()


def test_of_a_numa_node_that_cannot_be_read_nothing_is_said() -> None:
    kernel = Kernel({}, a={})
    assert kernel.look(entry("a", 1000, 0), times=2) == ""
    assert kernel.memory.found == ()


def test_few_cgroups_are_read_once_a_minute() -> None:
    names = [f"p{number:03}" for number in range(MOST_READ + 9)]
    kernel = Kernel({0: 10_000_000}, **{name: {0: 1} for name in names})
    containers = [entry(name, 100, 0) for name in names]
    kernel.look(*containers)
    assert kernel.reads == MOST_READ + 2
    assert kernel.memory.found[0].unused == MOST_READ * 99 * MIB
    kernel.now_seconds -= 1
    kernel.look(*containers)
    assert kernel.reads == MOST_READ + 2
