"""Memory on a machine with two NUMA nodes: one CPU each, CPU 1 beside node 1.

Not collected on the host, which has one node: test_in_virtual_machine.py runs this.
"""

import re
from functools import partial
from pathlib import Path

from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, cpus_of
from support.real.waiting import eventually

# A shell that holds 4 MiB in a variable, and says when it has it; `true` at the end keeps it from
# becoming its last command.
HOLD = ("sh", "-c", "held=$(yes | head -c 4194304); echo held; sleep 1000; true")
HELD_PAGES = 4194304 // 4096
# What runc and the program touched before their memory was bound.
TRACE_PAGES = 64


def pages(cgroup: str) -> dict[int, int]:
    """Anonymous pages of every process of a cgroup on each NUMA node. Source: numa(7)."""
    found: dict[int, int] = {}
    for pid in (CPUSET / cgroup / "cgroup.procs").read_text().split():
        for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
            if "anon=" in line:
                for node, count in re.findall(r" N(\d+)=(\d+)", line):
                    found[int(node)] = found.get(int(node), 0) + int(count)
    return found


async def test_memory_comes_from_the_assigned_node_and_follows_it(
    node: Node, kubelet: Kubelet
) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "besteffort"),
    )
    other_id = await kubelet.run(other, "main")
    await node.start()
    await node.applied(spec(assigned(exclusive.uid, "main", "1", mems="1"), shared="0"))
    exclusive_id = await kubelet.run(exclusive, "main", HOLD)
    cgroup = f"{exclusive.cgroup}/{exclusive_id}"
    await eventually(lambda: "held" in kubelet.output(exclusive, "main"), "4 MiB to be held")
    assert cpus_of(cgroup) == "1"
    assert mems_of(cgroup) == "1"
    there = pages(cgroup)
    assert there.get(1, 0) >= HELD_PAGES
    assert there.get(0, 0) < TRACE_PAGES

    status = await node.applied(spec(assigned(exclusive.uid, "main", "1", mems="0"), shared="0"))
    assert [(one["cpus"], one["mems"]) for one in status["containers"]] == [("1", "0")]
    await eventually(partial(all_on, cgroup, 0), "the pages to move")
    assert cpus_of(f"{other.cgroup}/{other_id}") == "0"

    await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    await eventually(lambda: mems_of(cgroup) == "0-1", "the NUMA nodes that were found")
    assert mems_of(f"{other.cgroup}/{other_id}") == "0-1"


def mems_of(cgroup: str) -> str:
    return (CPUSET / cgroup / "cpuset.mems.effective").read_text().strip()


def all_on(cgroup: str, node: int) -> bool:
    """Whether all but a trace of the held pages are on one NUMA node."""
    found = pages(cgroup)
    elsewhere = sum(count for other, count in found.items() if other != node)
    return found.get(node, 0) >= HELD_PAGES and elsewhere < TRACE_PAGES
