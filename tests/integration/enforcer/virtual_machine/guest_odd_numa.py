"""A machine with NUMA node 0: CPUs 0-1 and memory, node 1: CPUs 2-3 only, node 2: memory only.

Not collected on the host: test_in_virtual_machine.py runs this.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.assignment.validation import find_problems
from numapin_enforcer.hardware.discovery import discover

GROUP = Path("/sys/fs/cgroup/odd")
TOPOLOGY = discover()
HELD_PAGES = 1024
# Joins the cgroup before it allocates, so that all of it is bound.
HOLD = f"echo $$ >{GROUP}/cgroup.procs; held=$(yes | head -c 4194304); echo held; sleep 1000; true"


@pytest.fixture
def group() -> Iterator[Path]:
    GROUP.mkdir()
    yield GROUP
    (GROUP / "cgroup.kill").write_text("1")
    while (GROUP / "cgroup.procs").read_text():
        pass
    GROUP.rmdir()


def spec(mems: str) -> NodeAssignmentSpec:
    names = {"podUID": "uid", "namespace": "default", "pod": "p", "container": "main"}
    container = {**names, "cpus": "2-3", "mems": mems, "exclusive": True}
    pools = {"reserved": "0", "shared": "0-1"}
    return decode_spec({"containers": [container], "pools": pools})


def test_each_numa_node_is_found_with_what_it_has() -> None:
    assert TOPOLOGY.numa_cpus == {0: CpuSet.parse("0-1"), 1: CpuSet.parse("2-3"), 2: CpuSet()}
    memory = {node.id: node.memory_bytes > 0 for node in TOPOLOGY.numa_nodes}
    assert memory == {0: True, 1: False, 2: True}
    assert TOPOLOGY.mems == MemSet.parse("0,2")
    assert TOPOLOGY.warnings == ()


def test_only_numa_nodes_with_memory_are_accepted(group: Path) -> None:
    """The kernel accepts a node without memory, but the effective set is then the parent's."""
    (group / "cpuset.mems").write_text("1")
    assert (group / "cpuset.mems.effective").read_text().strip() == "0,2"
    (refused,) = find_problems(spec("1"), TOPOLOGY, "n", "n")
    assert "NUMA node 1 has no memory; memory is on 0,2" in str(refused)
    for mems in ("0", "2", "0,2"):
        assert find_problems(spec(mems), TOPOLOGY, "n", "n") == ()
        (group / "cpuset.mems").write_text(mems)
        assert (group / "cpuset.mems.effective").read_text().strip() == mems


def test_cpus_without_memory_allocate_on_the_assigned_node(group: Path) -> None:
    (group / "cpuset.cpus").write_text("2-3")
    (group / "cpuset.mems").write_text("2")
    with subprocess.Popen(["sh", "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        pages: dict[int, int] = {}
        for line in Path(f"/proc/{process.pid}/numa_maps").read_text().splitlines():
            if "anon=" in line:
                for node, count in re.findall(r" N(\d+)=(\d+)", line):
                    pages[int(node)] = pages.get(int(node), 0) + int(count)
        process.kill()
    assert pages.get(2, 0) >= HELD_PAGES
    assert pages.get(0, 0) < 64
