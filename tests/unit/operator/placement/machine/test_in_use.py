"""Memory that is in use without an assignment is not promised."""

from dataclasses import replace

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import Plan, PodView, plan_node, plan_with, resolve
from support.values.placement import GIB, NO_UIDS, machine, pod, policy, resources

MIB = 1 << 20
TWO_NODES = machine(8, threads=1, numa_nodes=2, memory_bytes=4 * GIB)
OURS = [policy(memory={"policy": name}) for name in ("Static", "Preferred", "SingleNUMA")]


def bound(spec: NodeAssignmentSpec) -> dict[str, tuple[str, str]]:
    return {entry.pod: (str(entry.cpus), str(entry.mems)) for entry in spec.containers}


@pytest.mark.parametrize("binding", OURS, ids=lambda one: one.memory.policy)
def test_memory_of_pods_that_were_there_first_is_not_promised_again(binding: CpuPolicySpec) -> None:
    """Its 3 GiB are where its CPUs are: on NUMA node 0. They were promised to the next pod."""
    first = pod("first", "2", memory="3Gi")
    before = plan_node(TWO_NODES, policy(), None, [first], NO_UIDS).spec
    assert bound(before) == {"first": ("1-2", "")}
    after = plan_node(TWO_NODES, binding, before, [first, pod("b", "1", memory="2Gi")], NO_UIDS)
    assert bound(after.spec)["first"] == ("1-2", "")
    assert bound(after.spec)["b"][1] == "1"


@pytest.mark.parametrize("binding", OURS, ids=lambda one: one.memory.policy)
def test_memory_of_a_pod_that_is_not_selected_is_taken_from_every_numa_node(
    binding: CpuPolicySpec,
) -> None:
    beside = replace(pod("beside", "500m", memory="4Gi"), selected=False)
    small, large = pod("small", "1", memory="2Gi"), pod("large", "1", memory="2049Mi")
    spec = plan_node(TWO_NODES, binding, None, [beside, small], NO_UIDS).spec
    assert bound(spec)["small"][1] in {"0", "1"}
    strict = binding.model_copy(
        update={"memory": binding.memory.model_copy(update={"policy": "SingleNUMA"})}
    )
    refused = plan_node(TWO_NODES, strict, None, [beside, large], NO_UIDS).spec.refused
    assert [one.reason for one in refused] == ["NotEnoughMemory"]
    assert "2 GiB memory (2 GiB used by others)" in (refused[0].message or "")


@pytest.mark.parametrize(
    ("used", "numa_node"),
    [
        pytest.param({}, "0", id="not-known"),
        pytest.param({0: 3 * GIB, 1: GIB // 2}, "1", id="most-on-the-first"),
        pytest.param({1: 3 * GIB}, "0", id="on-the-second"),
        pytest.param({0: 40 * GIB}, "1", id="more-than-requested"),
        pytest.param({7: 3 * GIB}, "0", id="on-no-node-of-the-machine"),
    ],
)
def test_what_a_pod_uses_is_withheld_where_the_kernel_has_it(
    used: dict[int, int], numa_node: str
) -> None:
    """It shares CPUs; half of its 4 GiB were withheld on each NUMA node."""
    static = resolve(TWO_NODES, policy(memory={"policy": "Static"}))
    beside = replace(pod("beside", "500m", memory="4Gi"), selected=False)
    seen = replace(static, used_memory={beside.uid: used})
    spec = plan_with(seen, None, [beside, pod("b", "1", memory="1536Mi")], NO_UIDS).spec
    assert bound(spec)["b"][1] == numa_node


def test_what_a_bound_pod_still_has_elsewhere_is_withheld_there() -> None:
    """The enforcer leaves it there if it is too much to move (`MemoryNotBound`)."""
    alone = resolve(TWO_NODES, policy(memory={"policy": "SingleNUMA"}))
    pods = [pod("first", "500m", memory="3Gi"), pod("b", "1", memory="2Gi")]
    before = plan_with(alone, None, pods[:1], NO_UIDS).spec
    assert bound(before) == {"first": ("", "0")}
    moved = replace(alone, used_memory={"uid-first": {0: 3 * GIB, 1: 0}})
    assert bound(plan_with(moved, before, pods, NO_UIDS).spec)["b"][1] == "1"
    stays = replace(alone, used_memory={"uid-first": {0: GIB // 2, 1: 5 * GIB // 2}})
    (refused,) = plan_with(stays, before, pods, NO_UIDS).spec.refused
    assert refused.reason == "NotEnoughMemory"
    assert "1.5 GiB memory (2.5 GiB used by others)" in (refused.message or "")


def test_a_refused_pod_runs_and_uses_its_memory() -> None:
    """It is refused for its CPUs. The pod after it was promised all memory."""
    alone = policy(memory={"policy": "SingleNUMA"})
    pods = [pod("many", "8", memory="4Gi"), pod("after", "1", memory="3Gi")]
    spec = plan_node(TWO_NODES, alone, None, pods, NO_UIDS).spec
    assert {one.pod: one.reason for one in spec.refused} == {
        "many": "NotEnoughCPUs",
        "after": "NotEnoughMemory",
    }
    assert plan_node(TWO_NODES, alone, spec, pods, NO_UIDS).spec == spec


def test_a_pod_waits_for_memory_that_an_ending_unbound_pod_uses() -> None:
    binding = policy(memory={"policy": "SingleNUMA"})
    ending = replace(pod("ending", "1", memory="8Gi"), selected=False, deleting=True)
    plan = plan_node(TWO_NODES, binding, None, [ending, pod("b", "1", memory="2Gi")], NO_UIDS)
    assert [one.pod.name for one in plan.queued] == ["b"]
    assert not plan.spec.refused


def test_what_a_refused_pod_uses_is_not_waited_for() -> None:
    """It was told that it waits, and was refused by the next plan."""
    binding = policy(memory={"policy": "SingleNUMA"})
    ending = replace(pod("ending", "1", memory="8Gi"), selected=False, deleting=True)
    pods = [ending, pod("many", "8", memory="4Gi"), pod("b", "1", memory="3Gi")]
    plan = plan_node(TWO_NODES, binding, None, pods, NO_UIDS)
    assert [one.pod for one in plan.spec.refused] == ["many", "b"]
    assert not plan.queued
    assert plan_node(TWO_NODES, binding, plan.spec, pods, NO_UIDS) == plan


def test_burstable_pods_and_ended_ones_are_not_accounted() -> None:
    static = policy(memory={"policy": "Static"})
    burstable = replace(pod("burstable", "500m", memory="8Gi"), qos="Burstable")
    ended = replace(pod("ended", "500m", memory="8Gi"), terminal=True, selected=False)
    pods = [burstable, ended, pod("b", "1", memory="4Gi")]
    spec = plan_node(TWO_NODES, static, None, pods, frozenset({"uid-ended"})).spec
    assert [entry.pod for entry in spec.containers] == ["b"]


def paged(name: str, size: str, *, deleting: bool = False) -> PodView:
    huge = resources("1", **{"hugepages-2Mi": size})
    body = {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c0", "resources": huge}]},
    }
    return replace(parse_pod(body), deleting=deleting)


def with_pages() -> Topology:
    rows = tuple(Cpu(cpu, cpu, 0, -1, cpu // 4) for cpu in range(8))
    return Topology(rows, tuple(NumaNode(node, 4 * GIB, {"2Mi": 16}) for node in (0, 1)))


def plan_on(
    free: dict[int, int], *pods: PodView, previous: NodeAssignmentSpec | None = None
) -> Plan:
    """SingleNUMA on two NUMA nodes of 16 huge pages of 2 MiB; `free` are pages."""
    resolved = resolve(with_pages(), policy(memory={"policy": "SingleNUMA"}))
    size = {node: pages * 2 * MIB for node, pages in free.items()}
    limited = replace(resolved, free_hugepages={"hugepages-2Mi": size})
    return plan_with(limited, previous, pods, NO_UIDS)


def test_huge_pages_that_a_host_process_holds_lead_to_another_numa_node() -> None:
    assert bound(plan_on({0: 16, 1: 16}, paged("a", "16Mi")).spec)["a"][1] == "0"
    assert bound(plan_on({0: 4, 1: 16}, paged("a", "16Mi")).spec)["a"][1] == "1"


def test_huge_pages_that_a_host_process_holds_are_named_in_a_refusal() -> None:
    refused = plan_on({0: 4, 1: 7}, paged("a", "16Mi")).spec.refused
    assert [one.reason for one in refused] == ["NotEnoughMemory"]
    assert "8 MiB hugepages-2Mi (24 MiB used by others)" in (refused[0].message or "")
    assert "14 MiB hugepages-2Mi (18 MiB used by others)" in (refused[0].message or "")


def test_pages_that_a_bound_pod_uses_count_once() -> None:
    """The kernel has none free on NUMA node 0 that are not promised: the pod uses its own."""
    first = plan_on({0: 16, 1: 16}, paged("a", "16Mi")).spec
    both = plan_on({0: 8, 1: 16}, paged("a", "16Mi"), paged("b", "16Mi"), previous=first)
    assert {name: mems for name, (_, mems) in bound(both.spec).items()} == {"a": "0", "b": "0"}


def test_a_pod_waits_for_pages_of_an_ending_one_although_the_kernel_has_none_free() -> None:
    first = plan_on({0: 16, 1: 16}, paged("a", "32Mi"), paged("b", "32Mi")).spec
    ending = paged("a", "32Mi", deleting=True)
    pods = (ending, paged("b", "32Mi"), paged("c", "32Mi"))
    plan = plan_on({0: 0, 1: 0}, *pods, previous=first)
    assert [one.pod.name for one in plan.queued] == ["c"]
    assert not plan.spec.refused


def test_without_a_report_huge_pages_are_what_the_machine_has() -> None:
    assert bound(plan_on({}, paged("a", "32Mi")).spec)["a"][1] == "0"


def test_a_pod_whose_memory_is_refused_reads_that_its_cpus_are_free() -> None:
    alone = policy(memory={"policy": "SingleNUMA"})
    large = pod("large", "2", memory="5Gi")
    (refused,) = plan_node(TWO_NODES, alone, None, [large], NO_UIDS).spec.refused
    assert "NUMA node 1: 4 CPUs + 4 GiB memory, 0: 3 CPUs + 4 GiB memory" in (refused.message or "")
