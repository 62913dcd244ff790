"""What one node's assignment becomes: stability, releases, refusals, the shared pool."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods import parse_pod
from numapin_operator.placement import PodView, PolicyError, plan_node, with_reserved

NOBODY: frozenset[str] = frozenset()


def machine(cpus: int = 8, threads: int = 2, numa_nodes: int = 1) -> Topology:
    """Cores of neighbouring siblings, sockets and NUMA nodes in equal parts."""
    per_node = cpus // numa_nodes
    return Topology(
        cpus=tuple(
            Cpu(cpu, cpu // threads * threads, cpu // per_node, -1, cpu // per_node)
            for cpu in range(cpus)
        ),
        numa_nodes=tuple(NumaNode(node, 1 << 34) for node in range(numa_nodes)),
    )


def pod(name: str, *cpus: str, uid: str = "", **spec: Any) -> PodView:
    def resources(cpu: str) -> dict[str, Any]:
        amounts = {"cpu": cpu, "memory": "64Mi"}
        return {"requests": amounts, "limits": amounts}

    containers = [
        {"name": f"c{index}", "resources": resources(cpu)} for index, cpu in enumerate(cpus)
    ]
    return parse_pod(
        {
            "metadata": {"name": name, "uid": uid or f"uid-{name}"},
            "spec": {"containers": containers} | spec,
        }
    )


def policy(**fields: Any) -> CpuPolicySpec:
    return CpuPolicySpec.model_validate({"reserved": {"cpus": "0"}} | fields)


def given(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {f"{entry.pod}/{entry.container}": str(entry.cpus) for entry in spec.containers}


def shared(spec: NodeAssignmentSpec) -> str:
    assert spec.pools is not None
    return str(spec.pools.shared)


def test_whole_cpu_containers_of_guaranteed_pods_get_their_own() -> None:
    plan = plan_node(machine(), policy(), None, [pod("a", "2", "500m"), pod("b", "1")], NOBODY)
    assert given(plan.spec) == {"a/c0": "2-3", "b/c0": "1"}
    assert shared(plan.spec) == "0,4-7"
    assert plan.spec.pools is not None
    assert str(plan.spec.pools.reserved) == "0"
    assert all(entry.exclusive for entry in plan.spec.containers)


def test_what_was_decided_stays_when_room_appears_elsewhere() -> None:
    a, b, c = pod("a", "2"), pod("b", "2"), pod("c", "2")
    first = plan_node(machine(), policy(), None, [a, b, c], NOBODY).spec
    second = plan_node(machine(), policy(), first, [b, c], NOBODY).spec
    assert given(second) == {name: cpus for name, cpus in given(first).items() if "a/" not in name}


@pytest.mark.parametrize("ended", ["gone", "terminal"])
def test_a_pod_is_released_only_when_its_cgroup_is_gone_too(ended: str) -> None:
    a = pod("a", "2")
    before = plan_node(machine(), policy(), None, [a], NOBODY).spec
    left = [] if ended == "gone" else [replace(a, terminal=True)]
    still_there = plan_node(machine(), policy(), before, left, frozenset({a.uid})).spec
    assert given(still_there) == given(before)
    gone = plan_node(machine(), policy(), before, left, NOBODY).spec
    assert given(gone) == {}
    assert shared(gone) == "0-7"


def test_an_init_container_that_has_ended_gives_its_cpus_back() -> None:
    amounts = {"cpu": "4", "memory": "64Mi"}
    init = [{"name": "i", "resources": {"requests": amounts, "limits": amounts}}]
    starting = pod("a", "2", initContainers=init)
    first = plan_node(machine(), policy(), None, [starting], NOBODY).spec
    assert given(first) == {"a/i": "2-5", "a/c0": "2-3"}
    ended = replace(starting.containers[0], ended=True)
    working = replace(starting, containers=(ended, *starting.containers[1:]))
    second = plan_node(machine(), policy(), first, [working], NOBODY).spec
    assert given(second) == {"a/c0": "2-3"}
    assert shared(second) == "0-1,4-7"


def test_a_pod_that_does_not_fit_is_refused_with_the_numbers_and_stays_refused() -> None:
    a, b = pod("a", "6"), pod("b", "4")
    first = plan_node(machine(), policy(), None, [a, b], NOBODY).spec
    assert [(each.pod, each.reason) for each in first.refused] == [("b", "NotEnoughCPUs")]
    assert "4" in first.refused[0].message
    second = plan_node(machine(), policy(), first, [b], NOBODY).spec
    assert second.refused == first.refused
    assert shared(second) == "0-7"
    again = first.model_copy(update={"refused": ()})
    assert given(plan_node(machine(), policy(), again, [b], NOBODY).spec) == {"b/c0": "2-5"}


def test_the_shared_pool_is_never_emptied() -> None:
    strict = policy(reserved={"cpus": "0", "strict": True})
    plan = plan_node(machine(), strict, None, [pod("a", "6"), pod("b", "1")], NOBODY)
    assert [(each.pod, each.reason) for each in plan.spec.refused] == [("b", "SharedPoolEmpty")]
    assert shared(plan.spec)


def test_a_container_on_cpus_that_became_reserved_keeps_them_and_is_reported() -> None:
    a = pod("a", "2")
    before = plan_node(machine(), policy(), None, [a], NOBODY).spec
    wider = policy(reserved={"cpus": "0-3"})
    plan = plan_node(machine(), wider, before, [a], NOBODY)
    assert given(plan.spec) == given(before)
    assert [(each.pod, str(each.cpus)) for each in plan.waiting] == [("a", "2-3")]
    assert plan.spec.pools is not None
    assert str(plan.spec.pools.reserved) == "0-1"
    after = plan_node(machine(), wider, plan.spec, [], NOBODY)
    assert after.spec.pools is not None
    assert (str(after.spec.pools.reserved), after.waiting) == ("0-3", ())


def test_equal_input_gives_equal_bytes() -> None:
    pods = [pod(name, "2", "1") for name in "abc"]
    plans = [plan_node(machine(16), policy(), None, pods, NOBODY).spec for _ in range(2)]
    assert plans[0].model_dump_json() == plans[1].model_dump_json()


def test_pods_that_are_not_selected_deleted_or_of_another_class_share() -> None:
    burstable = pod("c", "2", uid="c")
    pods = [
        replace(pod("a", "2"), selected=False),
        replace(pod("b", "2"), deleting=True),
        replace(burstable, qos="Burstable"),
    ]
    assert given(plan_node(machine(), policy(), None, pods, NOBODY).spec) == {}
    both = policy(pods={"qosClasses": ["Guaranteed", "Burstable"]})
    assert given(plan_node(machine(), both, None, pods, NOBODY).spec) == {"c/c0": "2-3"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reserved": {"cpus": "7-9"}}, "reserved.cpus: this machine has no online CPU 8-9"),
        ({"reserved": {"count": 9}}, "reserved.count: wanted 9 CPUs, 8 free"),
        ({"reserved": {"count": 8, "strict": True}}, "leaves no CPU for the shared pool"),
        (
            {"options": {"fullPCPUsOnly": True, "distributeCPUsAcrossCores": True}},
            "options.distributeCPUsAcrossCores: excludes options.fullPCPUsOnly",
        ),
        (
            {"options": {"alignBySocket": True}, "topology": {"policy": "SingleNUMANode"}},
            "contradicts topology.policy SingleNUMANode",
        ),
        (
            {"memory": {"policy": "Static", "reserved": [{"numaNode": 3, "memory": "1Gi"}]}},
            r"memory.reserved\[0\].numaNode: this machine has no NUMA node 3, only 0",
        ),
        (
            {"memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "17Gi"}]}},
            r"memory.reserved\[0\]: memory: .* lower it",
        ),
    ],
)
def test_a_policy_that_cannot_work_says_which_field_and_why(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        plan_node(machine(), policy(**fields), None, [], NOBODY)


def test_without_reserved_cpus_the_node_s_own_reservation_is_rounded_up() -> None:
    unset = CpuPolicySpec()
    assert with_reserved(unset, 8000, 6500).reserved.count == 2
    assert with_reserved(unset, 8000, 8000).reserved.count == 1
    assert with_reserved(policy(), 8000, 1000) == policy()


def _with_one_owner() -> NodeAssignmentSpec:
    return plan_node(machine(2, threads=1), policy(), None, [pod("old", "1")], NOBODY).spec


@pytest.mark.parametrize(
    ("ending", "running"),
    [
        (replace(pod("old", "1"), deleting=True), NOBODY),
        (replace(pod("old", "1"), terminal=True), frozenset({"uid-old"})),
        (None, frozenset({"uid-old"})),
    ],
    ids=["being deleted", "ended, its cgroup still there", "gone, its cgroup still there"],
)
def test_a_pod_that_replaces_one_that_is_ending_waits_for_it(
    ending: PodView | None, running: frozenset[str]
) -> None:
    before, new = _with_one_owner(), pod("new", "1")
    pods = [new] if ending is None else [ending, new]
    meanwhile = plan_node(machine(2, threads=1), policy(), before, pods, running)
    assert given(meanwhile.spec) == {"old/c0": "1"}
    assert meanwhile.queued == ("default/new",)
    assert not meanwhile.spec.refused
    after = plan_node(machine(2, threads=1), policy(), meanwhile.spec, [new], NOBODY)
    assert given(after.spec) == {"new/c0": "1"}
    assert not after.queued


def test_a_pod_that_would_not_fit_anyhow_is_refused_though_others_are_ending() -> None:
    pods = [replace(pod("old", "1"), deleting=True), pod("big", "2")]
    plan = plan_node(machine(2, threads=1), policy(), _with_one_owner(), pods, NOBODY)
    assert [refusal.pod for refusal in plan.spec.refused] == ["big"]
    assert not plan.queued


def test_cpus_that_went_offline_leave_the_assignment() -> None:
    a, b = pod("a", "2"), pod("b", "2")
    before = plan_node(machine(), policy(), None, [a, b], NOBODY).spec
    assert given(before) == {"a/c0": "2-3", "b/c0": "4-5"}
    whole = machine()
    fewer = replace(whole, cpus=tuple(cpu for cpu in whole.cpus if cpu.id not in {3, 4, 5}))
    after = plan_node(fewer, policy(), before, [a, b], NOBODY).spec
    assert given(after) == {"a/c0": "2", "b/c0": "6-7"}
    assert shared(after) == "0-1"


def test_everybody_else_keeps_a_cpu_when_a_policy_turns_strict_on_a_full_node() -> None:
    a = pod("a", "7")
    before = plan_node(machine(), policy(), None, [a], NOBODY).spec
    strict = policy(reserved={"cpus": "0", "strict": True})
    plan = plan_node(machine(), strict, before, [a], NOBODY)
    assert shared(plan.spec) == "0"
    assert [each.pod for each in plan.waiting] == ["a"]
    after = plan_node(machine(), strict, plan.spec, [], NOBODY)
    assert (shared(after.spec), after.waiting) == ("1-7", ())


def test_an_assignment_that_leaves_no_cpu_at_all_is_not_written() -> None:
    a = pod("a", "7")
    before = plan_node(machine(), policy(), None, [a], NOBODY).spec
    whole = machine()
    last = replace(whole, cpus=tuple(cpu for cpu in whole.cpus if cpu.id))
    with pytest.raises(PolicyError, match="hold every CPU that is online"):
        plan_node(last, policy(reserved={"cpus": "1"}), before, [a], NOBODY)


def test_numa_nodes_without_memory_are_never_named() -> None:
    """Best effort may end with all NUMA nodes; the kernel refuses those without memory."""
    topology = machine(8, 2, 2)
    bare = replace(topology.numa_nodes[1], memory_bytes=0)
    topology = replace(topology, numa_nodes=(topology.numa_nodes[0], bare))
    fields = {"topology": {"policy": "BestEffort"}, "memory": {"policy": "Static"}}
    plan = plan_node(topology, policy(**fields), None, [pod("a", "6"), pod("b", "500m")], NOBODY)
    assert {str(entry.mems) for entry in plan.spec.containers} <= {"0", ""}
    assert given(plan.spec)["a/c0"] == "2-7"
