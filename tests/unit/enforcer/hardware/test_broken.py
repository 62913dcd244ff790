"""CPUs and NUMA nodes that firmware got wrong: usable groups, and a warning that says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
SMT = "0=0,4 1=1,5 2=2,6 3=3,7"
HALVES = "0=0-1,4-5 1=2-3,6-7"


@dataclass(frozen=True)
class Broken:
    """What is damaged, and which groups of a level and which warnings follow."""

    level: str
    groups: str
    warnings: tuple[str, ...] = ()
    put: Mapping[str, str | None] = field(default_factory=dict)
    drop: tuple[str, ...] = ()


def _each_cpu(file: str, text: str) -> dict[str, str | None]:
    return {f"{CPU}/cpu{cpu}/{file}": text for cpu in range(8)}


CASES = {
    "garbage siblings of one thread": Broken(
        "core",
        SMT,
        ("cpu[2]/topology/thread_siblings is not a mask", "cpu[2]/topology has no thread_siblings"),
        {f"{CPU}/cpu2/topology/thread_siblings": "zz"},
    ),
    "no siblings at all": Broken(
        "core",
        "0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7",
        ("cpu[0-7]/topology has no thread_siblings: treated as a core of its own",),
        drop=("thread_siblings",),
    ),
    "siblings that contradict each other": Broken(
        "core",
        SMT,
        ("cpu[2]/topology/thread_siblings differs from that of its siblings",),
        {f"{CPU}/cpu2/topology/thread_siblings": "4"},
    ),
    "siblings that are offline": Broken("core", "0=0 1=1 2=2 3=3", (), {f"{CPU}/online": "0-3"}),
    "siblings as lists only": Broken(
        "core",
        SMT,
        (),
        {f"{CPU}/cpu{cpu}/topology/core_cpus_list": f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)},
        ("thread_siblings",),
    ),
    "package ids all -1": Broken(
        "socket",
        HALVES,
        ("cpu[0-7]/topology/physical_package_id is absent or negative",),
        _each_cpu("topology/physical_package_id", "-1"),
    ),
    "one package id missing": Broken(
        "socket",
        HALVES,
        ("cpu[2]/topology/physical_package_id is absent or negative",),
        drop=("cpu2/topology/physical_package_id",),
    ),
    "neither package ids nor package siblings": Broken(
        "socket",
        HALVES,
        ("cpu[0-7]/topology/physical_package_id is absent or negative",),
        drop=("physical_package_id", "core_siblings"),
    ),
    "cache ids missing": Broken(
        "uncore_cache",
        HALVES,
        ("cpu[0-7]/cache: the L3 has no unique id",),
        drop=("index3/id",),
    ),
    "cache ids all the same": Broken(
        "uncore_cache",
        HALVES,
        ("cpu[0-7]/cache: the L3 has no unique id",),
        _each_cpu("cache/index3/id", "0"),
    ),
    "cache ids larger than a status can have": Broken(
        "uncore_cache",
        HALVES,
        ("cpu[0-7]/cache: the L3 has no unique id",),
        {f"{CPU}/cpu{cpu}/cache/index3/id": str((1 << 32) + cpu % 4 // 2) for cpu in range(8)},
    ),
    "no caches": Broken(
        "uncore_cache",
        "",
        ("cpu*/cache is absent: no CPUs are known to share an L3",),
        drop=("/cache/",),
    ),
    "cache without a map": Broken(
        "uncore_cache",
        "0=0-1,4-5 8=3,6-7",
        ("cpu[2]/cache has an L3 without shared_cpu_map: treated as unknown",),
        drop=("cpu2/cache/index3/shared_cpu_map",),
    ),
    "overlapping NUMA nodes": Broken(
        "numa",
        "0=0-7 1=",
        ("node[1]/cpumap lists CPUs of lower-numbered nodes",),
        {f"{NODE}/node0/cpumap": "ff", f"{NODE}/node1/cpumap": "ff"},
    ),
    "offline NUMA node with online CPUs": Broken(
        "numa",
        "1=0-7",
        ("CPUs 0-1,4-5 are in no online NUMA node", "treated as CPUs of node 1"),
        {f"{NODE}/online": "1", f"{NODE}/node1/distance": "10"},
    ),
    "CPU of no NUMA node": Broken(
        "numa",
        HALVES,
        ("CPUs 6 are in no online NUMA node", "treated as CPUs of node 1"),
        {f"{NODE}/node1/cpumap": "8c"},
    ),
    "NUMA node known by its links only": Broken(
        "numa",
        HALVES,
        ("node[1] has no cpumap and no cpulist: its links to CPUs are used",),
        {f"{NODE}/node1/cpu{cpu}": None for cpu in (2, 3, 6, 7)},
        ("node1/cpumap",),
    ),
    "online list of NUMA nodes is garbage": Broken(
        "numa",
        HALVES,
        ("node/online is not a list such as 0-3,8: treated as absent",),
        {f"{NODE}/online": "none"},
    ),
    "listed NUMA node that is not there": Broken(
        "numa",
        HALVES,
        ("node[5] does not exist but is listed as online: treated as offline",),
        {f"{NODE}/online": "0-1,5"},
    ),
    "no NUMA at all": Broken("numa", "0=0-7", drop=("/node/",)),
    "empty NUMA node": Broken(
        "numa",
        f"{HALVES} 2=",
        ("node[2] has neither CPUs nor memory: nothing is assigned there",),
        {
            f"{NODE}/online": "0-2",
            f"{NODE}/node2/cpumap": "0",
            f"{NODE}/node2/meminfo": "Node 2 MemTotal: 0 kB",
            **{f"{NODE}/node{node}/distance": "10 20 20" for node in range(3)},
        },
    ),
    "online CPU without a folder": Broken(
        "core",
        SMT,
        ("cpu[8-9] does not exist but is listed as online: treated as offline",),
        {f"{CPU}/online": "0-9"},
    ),
    "no list of online CPUs": Broken(
        "core",
        "0=0,4 1=1,5 2=2,6",
        (),
        {f"{CPU}/cpu{cpu}/online": "0" for cpu in (3, 7)},
        ("cpu/online",),
    ),
}


def _groups(topology: Topology, level: str) -> str:
    groups: dict[int, CpuSet] = getattr(topology, f"{level}_cpus")
    return " ".join(f"{number}={cpus}" for number, cpus in groups.items())


def test_sound_machine_has_no_warnings(discovered: Callable[..., Topology]) -> None:
    topology = discovered({})
    assert topology.warnings == ()
    assert _groups(topology, "core") == SMT
    assert _groups(topology, "socket") == HALVES
    assert _groups(topology, "uncore_cache") == "0=0-1,4-5 8=2-3,6-7"
    assert _groups(topology, "numa") == HALVES
    assert [node.hugepages for node in topology.numa_nodes] == [{"2Mi": 0}, {"2Mi": 1}]
    assert [node.distances for node in topology.numa_nodes] == [(10, 21), (21, 10)]
    assert topology.pci[0].numa_node == 1
    assert str(topology.isolated) == "7"


@pytest.mark.parametrize("name", CASES)
def test_broken_machine_is_usable_and_the_warnings_say_what_is_wrong(
    name: str, discovered: Callable[..., Topology]
) -> None:
    case = CASES[name]
    topology = discovered(dict(case.put), *case.drop)
    assert _groups(topology, case.level) == case.groups
    warnings = "\n".join(topology.warnings)
    assert bool(warnings) == bool(case.warnings)
    for warning in case.warnings:
        assert warning in warnings


def test_nul_bytes_are_ignored(
    discovered: Callable[..., Topology], sound_machine: dict[str, str]
) -> None:
    topology = discovered({path: f"\0{text}\0\n\0" for path, text in sound_machine.items()})
    assert topology.warnings == ()
    assert _groups(topology, "numa") == HALVES
