"""Small machines of many kinds: which sockets and cores they have, and what is remarked on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import discover

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


@dataclass(frozen=True)
class Machine:
    """A machine by the files of its CPUs: for each file the CPUs with each content.

    `files` has contents such as `1:0-3 2:4-7`, CPU by CPU; `groups` has lists of CPUs that list
    each other, such as `0-1 2-3`. CPUs in neither lack the file. Expected are `sockets` and `cores`
    (only those of several CPUs), and the beginnings of what is remarked on.
    """

    files: Mapping[str, str]
    groups: Mapping[str, str]
    sockets: str
    cores: str = ""
    remarks: Sequence[str] = ()
    nodes: str = "0-7"
    online: str = "0-7"


def _mask(cpus: CpuSet) -> str:
    return f"{cpus.mask:x}"


def _write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def build(root: Path, machine: Machine) -> Topology:
    """Write the machine's files and discover it; CPUs have no caches, NUMA nodes 1 GiB."""
    for cpu in range(8):
        (root / f"{CPU}/cpu{cpu}/topology").mkdir(parents=True)
    _write(root, f"{CPU}/online", machine.online)
    for name, contents in machine.files.items():
        for content in contents.split():
            text, _, listed = content.partition(":")
            for cpu in CpuSet.parse(listed):
                _write(root, f"{CPU}/cpu{cpu}/topology/{name}", text)
    for name, lists in machine.groups.items():
        for group in map(CpuSet.parse, lists.split()):
            for cpu in group:
                _write(root, f"{CPU}/cpu{cpu}/topology/{name}", _mask(group))
    nodes = machine.nodes.split()
    _write(root, f"{NODE}/online", f"0-{len(nodes) - 1}")
    for node, listed in enumerate(nodes):
        _write(root, f"{NODE}/node{node}/cpumap", _mask(CpuSet.parse(listed)))
        _write(root, f"{NODE}/node{node}/meminfo", f"Node {node} MemTotal: {1 << 20} kB")
        row = ["10" if node == other else "20" for other in range(len(nodes))]
        _write(root, f"{NODE}/node{node}/distance", " ".join(row))
    _write(root, "proc/meminfo", f"MemTotal: {len(nodes) << 20} kB")
    return discover(root / "sys", root / "proc")


PAIRS = "0-1 2-3 4-5 6-7"
SINGLE = "0 1 2 3 4 5 6 7"
OWN = "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"

MACHINES = {
    "books and drawers whose sockets have the same numbers": Machine(
        {
            "physical_package_id": "1:0-1,4-5 2:2-3,6-7",
            "book_id": "1:0-7",
            "drawer_id": "1:0-3 2:4-7",
        },
        {"thread_siblings": PAIRS, "core_siblings": "0-1 2-3 4-5 6-7"},
        sockets="0=0-1 1=2-3 2=4-5 3=6-7",
        cores=PAIRS,
        remarks=["cpu[0-7]/topology/physical_package_id is not unique"],
    ),
    "books whose sockets have the same numbers, CPUs of which are offline": Machine(
        {"physical_package_id": "0:0-7", "book_id": "5:0-3 9:4-7"},
        {"thread_siblings": SINGLE},
        sockets="0=1-3 1=4-6",
        remarks=["cpu[1-6]/topology/physical_package_id is not unique"],
        online="1-6",
    ),
    "books whose sockets have different numbers": Machine(
        {"physical_package_id": "3:0-3 7:4-7", "book_id": "1:0-3 2:4-7", "drawer_id": "0:0-7"},
        {"thread_siblings": SINGLE, "core_siblings": "0-3 4-7"},
        sockets="3=0-3 7=4-7",
    ),
    "numbers larger than a status can have": Machine(
        {"physical_package_id": "0:0-3 4294967295:4-7"},
        {"thread_siblings": SINGLE, "core_siblings": "0-3 4-7"},
        sockets="0=0-3 1=4-7",
        remarks=["cpu[0-7]/topology/physical_package_id is not unique, or too large"],
    ),
    "books with numbers, sockets without": Machine(
        {"physical_package_id": "-1:0-7", "book_id": "0:0-3 1:4-7", "drawer_id": "-1:0-7"},
        {"thread_siblings": SINGLE, "core_siblings": "0-1 2-3 4-7"},
        sockets="0=0-1 1=2-3 2=4-7",
        remarks=["cpu[0-7]/topology/physical_package_id is absent or negative"],
    ),
    "a book's number is missing": Machine(
        {"physical_package_id": "1:0-7", "book_id": "1:0-3 2:4-6"},
        {"thread_siblings": SINGLE, "core_siblings": "0-3 4-7"},
        sockets="0=0-3 1=4-7",
        remarks=[
            "cpu[0-6]/topology/physical_package_id is not unique",
            "cpu[7]/topology/physical_package_id is absent or negative, or alone without book_id",
        ],
    ),
    "s390x under KVM: each CPU with numbers of its own": Machine(
        {"physical_package_id": OWN, "book_id": OWN, "drawer_id": OWN, "core_id": OWN},
        {"thread_siblings": SINGLE, "core_siblings": SINGLE},
        sockets="0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7",
    ),
    "s390x under KVM: one number, siblings that say nothing": Machine(
        {"physical_package_id": "0:0-7", "book_id": "0:0-7", "drawer_id": "0:0-7", "core_id": OWN},
        {"thread_siblings": SINGLE, "core_siblings": SINGLE},
        sockets="0=0-7",
    ),
    "POWER: numbers of chips, siblings that say nothing": Machine(
        {"physical_package_id": "0:0-3 8:4-7", "core_id": "0:0-1 8:2-3 0:4-5 8:6-7"},
        {"thread_siblings": PAIRS, "core_siblings": PAIRS},
        sockets="0=0-3 8=4-7",
        cores=PAIRS,
        nodes="0-3 4-7",
    ),
    "POWER: no numbers, siblings that say nothing": Machine(
        {"physical_package_id": "-1:0-7", "core_id": "0:0-1 2:2-3 4:4-5 6:6-7"},
        {"thread_siblings": PAIRS, "core_siblings": PAIRS},
        sockets="0=0-3 1=4-7",
        cores=PAIRS,
        remarks=["cpu[0-7]/topology/physical_package_id is absent or negative, and core_siblings"],
        nodes="0-3 4-7",
    ),
    "POWER: no numbers, siblings of the NUMA node": Machine(
        {"physical_package_id": "-1:0-7"},
        {"thread_siblings": PAIRS, "core_siblings": "0-3 4-7"},
        sockets="0=0-3 1=4-7",
        cores=PAIRS,
        remarks=["cpu[0-7]/topology/physical_package_id is absent or negative, or alone"],
        nodes="0-3 4-7",
    ),
    "siblings that differ from the numbers": Machine(
        {"physical_package_id": "0:0-3 1:4-7"},
        {"thread_siblings": SINGLE, "core_siblings": "0-7"},
        sockets="0=0-3 1=4-7",
        remarks=["cpu[0-7]/topology: core_siblings differs from the CPUs with the same"],
    ),
    "dies and clusters, under their newer names": Machine(
        {"physical_package_id": "36:0-7", "die_id": "0:0-3 1:4-7", "cluster_id": "0:0-7"},
        {
            "core_cpus": PAIRS,
            "package_cpus": "0-7",
            "die_cpus": "0-3 4-7",
            "cluster_cpus": "0-3 4-7",
        },
        sockets="36=0-7",
        cores=PAIRS,
    ),
    "core numbers that repeat in each socket": Machine(
        {"physical_package_id": "0:0-3 1:4-7", "core_id": "0:0-1,4-5 1:2-3,6-7"},
        {"thread_siblings": PAIRS, "core_siblings": "0-3 4-7"},
        sockets="0=0-3 1=4-7",
        cores=PAIRS,
    ),
    "no lists of threads, core numbers that repeat": Machine(
        {
            "physical_package_id": "0:0-7",
            "die_id": "0:0-3 1:4-7",
            "core_id": "0:0-1,4-5 1:2-3,6-7",
        },
        {},
        sockets="0=0-7",
        cores=PAIRS,
        remarks=["cpu[0-7]/topology has no thread_siblings: those with the same core_id"],
    ),
    "no lists of threads, core numbers that repeat in each NUMA node of a socket": Machine(
        {"physical_package_id": "0:0-7", "core_id": "0:0-1,4-5 1:2-3,6-7"},
        {},
        sockets="0=0-7",
        cores=PAIRS,
        remarks=["cpu[0-7]/topology has no thread_siblings: those with the same core_id"],
        nodes="0-3 4-7",
    ),
    "no folders of topology at all": Machine(
        {},
        {},
        sockets="0=0-3 1=4-7",
        remarks=[
            "cpu[0-7]/topology/physical_package_id is absent or negative, and core_siblings",
            "cpu[0-7]/topology has no thread_siblings: treated as a core of its own",
        ],
        nodes="0-3 4-7",
    ),
    "threads of a core in two NUMA nodes": Machine(
        {"physical_package_id": "0:0-7"},
        {"thread_siblings": PAIRS, "core_siblings": "0-7"},
        sockets="0=0-7",
        cores=PAIRS,
        remarks=["the threads of cores 0-1 2-3 4-5 6-7 are in several NUMA nodes"],
        nodes="0,2,4,6 1,3,5,7",
    ),
    "NUMA nodes that cross sockets": Machine(
        {"physical_package_id": "0:0-3 1:4-7"},
        {"thread_siblings": PAIRS, "core_siblings": "0-3 4-7"},
        sockets="0=0-3 1=4-7",
        cores=PAIRS,
        remarks=["NUMA nodes 0 1 have CPUs of several sockets, and these have CPUs of other"],
        nodes="0-1,4-5 2-3,6-7",
    ),
    "NUMA nodes of several whole sockets": Machine(
        {"physical_package_id": "0:0-1 1:2-3 2:4-5 3:6-7"},
        {"thread_siblings": PAIRS, "core_siblings": PAIRS},
        sockets="0=0-1 1=2-3 2=4-5 3=6-7",
        cores=PAIRS,
        nodes="0-3 4-7",
    ),
    "threads of a core in two sockets": Machine(
        {"physical_package_id": "0:0-2 1:3-7"},
        {"thread_siblings": PAIRS, "core_siblings": "0-2 3-7"},
        sockets="0=0-2 1=3-7",
        cores=PAIRS,
        remarks=["the threads of cores 2-3 are in several sockets"],
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_machine_is_what_the_kernel_says(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    topology = build(tmp_path, machine)
    found = " ".join(f"{socket}={cpus}" for socket, cpus in topology.socket_cpus.items())
    assert found == machine.sockets
    cores = [str(cpus) for cpus in topology.core_cpus.values() if len(cpus) > 1]
    assert " ".join(cores) == machine.cores
    remarks = [one for one in topology.warnings if "cpu*/cache is absent" not in one]
    assert len(remarks) == len(machine.remarks)
    for remark, beginning in zip(remarks, machine.remarks, strict=True):
        assert remark.removeprefix("devices/system/cpu/").startswith(beginning)


def test_caches_that_cross_numa_nodes_are_remarked_on(
    discovered: Callable[..., Topology],
) -> None:
    topology = discovered({f"{NODE}/node0/cpumap": "0f", f"{NODE}/node1/cpumap": "f0"})
    assert [one[:60] for one in topology.warnings] == [
        "the threads of cores 0,4 1,5 2,6 3,7 are in several NUMA nod",
        "NUMA nodes 0 1 have CPUs of several sockets, and these have ",
        "L3 caches 0 8 are shared by parts of several NUMA nodes",
    ]
