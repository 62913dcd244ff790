"""What a refusal says: which constraint failed, and what was free where."""

from dataclasses import replace

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import MemSet
from numapin_api.topology import Topology
from numapin_operator.nodes.events.refusal_events import KEEPS, event_about
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, plan_node
from support.values.placement import GIB, NO_UIDS, machine, pod, policy, resources

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


@pytest.mark.parametrize("topology_policy", ["None", "BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("memory_policy", ["None", "Static", "Preferred", "SingleNUMA"])
def test_memory_of_gpus_is_neither_given_nor_counted_as_free(
    memory_policy: str, topology_policy: str
) -> None:
    """Two sockets of 16 GiB each, and two GPUs with eight NUMA nodes each, some for instances."""
    whole = machine(8, 2, 2)
    row = (10, 40, *[80] * 16)
    own = [replace(one, distances=row) for one in whole.numa_nodes]
    on_gpus = [
        replace(own[0], id=n, memory_bytes=size * GIB, distances=row, on_device=True)
        for n, size in enumerate((186, *[0] * 7, 0, 90, 90, *[0] * 5), start=2)
    ]
    topology = replace(whole, numa_nodes=(*own, *on_gpus))
    spec = policy(topology={"policy": topology_policy}, memory={"policy": memory_policy})
    fits, too_large = pod("fits", "1", memory="6Gi"), pod("large", "1", memory="60Gi")
    planned = plan_node(topology, spec, None, [fits, too_large], NO_UIDS).spec
    assert all(one.mems <= MemSet((0, 1)) for one in planned.containers)
    if memory_policy == "None":
        assert not planned.refused
    else:
        (refused,) = planned.refused
        assert refused.reason == "NotEnoughMemory"
        assert refused.message.endswith("memory, 2-17: on a GPU, not for containers")


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


def aligned(topology_policy: str, memory: str, scope: str = "Container") -> CpuPolicySpec:
    return policy(topology={"policy": topology_policy, "scope": scope}, memory={"policy": memory})


WIDER = (
    "6 CPUs need 2 NUMA nodes, 2 GiB of memory 1 NUMA node, and topology policy Restricted wants "
    "as many for both; memory.policy Preferred or topology.policy BestEffort does not"
)
LONE = "6 CPUs need 2 NUMA nodes, and topology policy SingleNUMANode allows one"
FAILED = [
    pytest.param(aligned("Restricted", "Static"), "6", "2Gi", WIDER, id="widths-differ"),
    pytest.param(
        aligned("Restricted", "Static"),
        "2",
        "6Gi",
        "2 CPUs need 1 NUMA node, 6 GiB of memory 2 NUMA nodes, and topology policy Restricted "
        "wants as many for both",
        id="memory-is-wider",
    ),
    pytest.param(aligned("SingleNUMANode", "Static"), "6", "2Gi", LONE, id="one-for-all"),
    pytest.param(
        aligned("SingleNUMANode", "Static", "Pod"),
        "6",
        "2Gi",
        f"{LONE} for the pod as a whole (topology.scope Pod)",
        id="scope-pod",
    ),
    pytest.param(
        aligned("SingleNUMANode", "Static"),
        "2",
        "6Gi",
        "6 GiB of memory needs 2 NUMA nodes, and topology policy SingleNUMANode allows one",
        id="one-for-memory",
    ),
    pytest.param(
        aligned("Restricted", "SingleNUMA"),
        "2",
        "6Gi",
        "wanted 6 GiB of memory on one NUMA node, none has so much",
        id="memory-policy",
    ),
    pytest.param(
        aligned("Restricted", "None"), "9", "1Gi", "no NUMA nodes have 9 CPUs free", id="too-many"
    ),
]


@pytest.mark.parametrize(("spec", "cpus", "memory", "why"), FAILED)
def test_the_constraint_that_failed_is_named(
    spec: CpuPolicySpec, cpus: str, memory: str, why: str
) -> None:
    """Two empty NUMA nodes of 4 CPUs and 4 GiB: no amount is short."""
    said = message(machine(8, 2, 2, memory_bytes=4 * GIB), spec, pod("a", cpus, memory=memory))
    assert said.startswith(why), said


@pytest.mark.parametrize(
    "remedy",
    [
        {"memory": {"policy": "Preferred"}, "topology": {"policy": "Restricted"}},
        {"memory": {"policy": "Static"}, "topology": {"policy": "BestEffort"}},
    ],
)
def test_each_remedy_for_other_widths_places_the_pod(remedy: dict[str, object]) -> None:
    topology = machine(8, 2, 2, memory_bytes=4 * GIB)
    asked = [pod("a", "6", memory="2Gi")]
    assert not plan_node(topology, policy(**remedy), None, asked, NO_UIDS).spec.refused


def test_what_is_used_is_named_apart_from_what_is_asked() -> None:
    """CPUs are free on NUMA node 1 only, memory on NUMA node 0 only."""
    spec = aligned("SingleNUMANode", "Static")
    topology = machine(8, 2, 2, memory_bytes=4 * GIB)
    pods = [pod("cpus", "3"), pod("memory", "1", memory="3Gi"), pod("a", "2", memory="2Gi")]
    assert message(topology, spec, *pods).startswith(
        "no NUMA node has 2 CPUs and 2 GiB of memory free, as topology policy SingleNUMANode"
    )


def test_memory_that_another_set_of_numa_nodes_has_is_named() -> None:
    """The first pod's memory binds both NUMA nodes together: 3 GiB are free, and not for one."""
    topology = machine(8, 2, 2, memory_bytes=4 * GIB)
    wide = pod("wide", "5", memory="5Gi")
    said = message(topology, aligned("Restricted", "Static"), wide, pod("a", "1", memory="1Gi"))
    assert said.startswith("no NUMA node has 1 GiB of memory free, as topology policy Restricted")
    assert "memory of other containers is bound there to another set of NUMA nodes" in said


def test_a_pod_whose_other_containers_would_starve_is_told_so() -> None:
    """Not that its NUMA nodes lack something: they are empty."""
    whole = {"resources": resources("2", "1Gi")}
    containers = [{"name": "main", "resources": resources("2")}, {"name": "side"}]
    view = parse_pod(
        {
            "metadata": {"name": "a", "uid": "uid-a"},
            "spec": {"containers": containers} | whole,
        }
    )
    spec = aligned("Restricted", "None", "Pod")
    said = message(machine(8, 2, 2, memory_bytes=4 * GIB), spec, view)
    assert "no NUMA node" not in said
    assert "side" in said
