"""What a refusal says: which constraint failed, and what was free where."""

from dataclasses import replace

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Topology
from numapin_operator.nodes.refusal_events import KEEPS, event_about
from numapin_operator.placement import PodView, plan_node
from support.values.placement import GIB, NO_UIDS, machine, pod, policy

SINGLE = policy(topology={"policy": "SingleNUMANode"})


def message(topology: Topology, spec: CpuPolicySpec, *pods: PodView) -> str:
    """What the only refusal says."""
    (refused,) = plan_node(topology, spec, None, pods, NO_UIDS).spec.refused
    return refused.message


def test_numa_nodes_with_most_cpus_come_first_and_equal_ones_are_one() -> None:
    """The first 16 of 32 NUMA nodes are full, and one CPU of the next has gone."""
    full = [pod(f"full-{n:02}", "7" if n == 0 else "8") for n in range(16)]
    said = message(machine(256, 2, 32), SINGLE, *full, pod("one", "1"), pod("wide", "12"))
    assert said.endswith(
        "up to 8 CPUs would fit; "
        "free on NUMA nodes 17-31: 8 CPUs each, 16: 7 CPUs, 0-15: 0 CPUs each"
    )


def test_numa_nodes_without_cpus_do_not_hide_those_that_have_some() -> None:
    """As on machines whose GPUs bring eight empty NUMA nodes each."""
    topology = machine(8, 2, 2)
    empty = tuple(replace(topology.numa_nodes[0], id=n, memory_bytes=0) for n in range(2, 34))
    topology = replace(topology, numa_nodes=(*topology.numa_nodes, *empty))
    said = message(topology, SINGLE, pod("wide", "5"))
    assert said.endswith("free on NUMA node 1: 4 CPUs, 0: 3 CPUs, 2-33: 0 CPUs each")


@pytest.mark.parametrize("memory_policy", ["None", "Static"])
def test_an_event_has_the_whole_message_on_a_machine_of_unequal_numa_nodes(
    memory_policy: str,
) -> None:
    """Each of 32 NUMA nodes has another amount free, and every second CPU is taken."""
    topology = machine(512, 2, 32)
    numa_nodes = tuple(replace(one, memory_bytes=(one.id + 2) * GIB) for one in topology.numa_nodes)
    topology = replace(topology, numa_nodes=numa_nodes)
    reserved = {"reserved": {"cpus": ",".join(map(str, range(0, 512, 2))), "strict": True}}
    spec = policy(memory={"policy": memory_policy}, **reserved)
    (refused,) = plan_node(topology, spec, None, [pod("wide", "400")], NO_UIDS).spec.refused
    event = event_about(refused, KEEPS)
    assert len(event.note.encode()) <= 1024
    assert event.note.endswith(KEEPS)
    assert "would fit" in event.note


def test_what_is_free_is_never_shown_as_what_was_asked() -> None:
    """One page of 4 KiB is missing: both are 6.1 GiB, rounded."""
    topology = machine(8, 2, 1, memory_bytes=6244 * 1024**2 - 4096)
    bound = policy(memory={"policy": "SingleNUMA"})
    said = message(topology, bound, pod("large", "2", memory="6244Mi"))
    assert "wanted 6244 MiB of memory" in said
    assert "6 GiB memory" in said
