"""What one node's assignment becomes: stability, releases, refusals, the shared pool."""

import json
from dataclasses import replace

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.placement import PodView, PolicyError, mark_outdated, plan_node, resolve
from support.values.placement import NO_UIDS, machine, pod, policy, resources


def given(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {f"{entry.pod}/{entry.container}": str(entry.cpus) for entry in spec.containers}


def shared(spec: NodeAssignmentSpec) -> str:
    assert spec.pools is not None
    return str(spec.pools.shared)


def test_whole_cpu_containers_of_guaranteed_pods_get_exclusive_cpus() -> None:
    plan = plan_node(machine(), policy(), None, [pod("a", "2", "500m"), pod("b", "1")], NO_UIDS)
    assert given(plan.spec) == {"a/c0": "2-3", "b/c0": "1"}
    assert shared(plan.spec) == "0,4-7"
    assert plan.spec.pools is not None
    assert str(plan.spec.pools.reserved) == "0"
    assert all(entry.exclusive for entry in plan.spec.containers)


def test_earlier_decisions_stand_when_other_cpus_become_free() -> None:
    a, b, c = pod("a", "2"), pod("b", "2"), pod("c", "2")
    first = plan_node(machine(), policy(), None, [a, b, c], NO_UIDS).spec
    second = plan_node(machine(), policy(), first, [b, c], NO_UIDS).spec
    assert given(second) == {name: cpus for name, cpus in given(first).items() if "a/" not in name}


@pytest.mark.parametrize("ended", ["gone", "terminal"])
def test_a_pod_is_released_only_when_its_cgroup_is_gone_too(ended: str) -> None:
    a = pod("a", "2")
    before = plan_node(machine(), policy(), None, [a], NO_UIDS).spec
    left = [] if ended == "gone" else [replace(a, terminal=True)]
    still_there = plan_node(machine(), policy(), before, left, frozenset({a.uid})).spec
    assert given(still_there) == given(before)
    gone = plan_node(machine(), policy(), before, left, NO_UIDS).spec
    assert given(gone) == {}
    assert shared(gone) == "0-7"


def test_cpus_of_a_completed_init_container_return_to_the_shared_pool() -> None:
    init = [{"name": "i", "resources": resources("4")}]
    starting = pod("a", "2", initContainers=init)
    first = plan_node(machine(), policy(), None, [starting], NO_UIDS).spec
    assert given(first) == {"a/i": "2-5", "a/c0": "2-3"}
    ended = replace(starting.containers[0], ended=True)
    working = replace(starting, containers=(ended, *starting.containers[1:]))
    second = plan_node(machine(), policy(), first, [working], NO_UIDS).spec
    assert given(second) == {"a/c0": "2-3"}
    assert shared(second) == "0-1,4-7"


def test_a_pod_that_does_not_fit_is_refused_with_the_numbers_and_stays_refused() -> None:
    a, b = pod("a", "6"), pod("b", "4")
    first = plan_node(machine(), policy(), None, [a, b], NO_UIDS).spec
    assert [(each.pod, each.reason) for each in first.refused] == [("b", "NotEnoughCPUs")]
    assert "4" in first.refused[0].message
    second = plan_node(machine(), policy(), first, [b], NO_UIDS).spec
    assert second.refused == first.refused
    assert shared(second) == "0-7"
    again = replace(first, refused=())
    assert given(plan_node(machine(), policy(), again, [b], NO_UIDS).spec) == {"b/c0": "2-5"}


def test_the_shared_pool_is_never_emptied() -> None:
    strict = policy(reserved={"cpus": "0", "strict": True})
    plan = plan_node(machine(), strict, None, [pod("a", "6"), pod("b", "1")], NO_UIDS)
    assert [(each.pod, each.reason) for each in plan.spec.refused] == [("b", "SharedPoolEmpty")]
    assert shared(plan.spec)


def test_a_container_on_cpus_that_became_reserved_keeps_them_and_is_reported() -> None:
    a = pod("a", "2")
    before = plan_node(machine(), policy(), None, [a], NO_UIDS).spec
    wider = policy(reserved={"cpus": "0-3"})
    plan = plan_node(machine(), wider, before, [a], NO_UIDS)
    assert given(plan.spec) == given(before)
    _, (found,) = mark_outdated(resolve(machine(), wider), plan.spec, [a], edited=True)
    assert (found.pod, found.why) == ("a", "uses 2-3, which is reserved now")
    assert plan.spec.pools is not None
    assert str(plan.spec.pools.reserved) == "0-1"
    after = plan_node(machine(), wider, plan.spec, [], NO_UIDS)
    assert after.spec.pools is not None
    assert str(after.spec.pools.reserved) == "0-3"


def test_equal_input_gives_equal_bytes() -> None:
    pods = [pod(name, "2", "1") for name in "abc"]
    plans = [plan_node(machine(16), policy(), None, pods, NO_UIDS).spec for _ in range(2)]
    assert json.dumps(plans[0].to_wire()) == json.dumps(plans[1].to_wire())


def test_pods_that_are_not_selected_deleted_or_of_another_class_share() -> None:
    burstable = pod("c", "2")
    pods = [
        replace(pod("a", "2"), selected=False),
        replace(pod("b", "2"), deleting=True),
        replace(burstable, qos="Burstable"),
    ]
    assert given(plan_node(machine(), policy(), None, pods, NO_UIDS).spec) == {}
    both = policy(pods={"qosClasses": ["Guaranteed", "Burstable"]})
    assert given(plan_node(machine(), both, None, pods, NO_UIDS).spec) == {"c/c0": "2-3"}


def _one_exclusive() -> NodeAssignmentSpec:
    return plan_node(machine(2, threads=1), policy(), None, [pod("old", "1")], NO_UIDS).spec


@pytest.mark.parametrize(
    ("ending", "running"),
    [
        (replace(pod("old", "1"), deleting=True), NO_UIDS),
        (replace(pod("old", "1"), terminal=True), frozenset({"uid-old"})),
        (None, frozenset({"uid-old"})),
    ],
    ids=["being deleted", "ended, its cgroup still there", "gone, its cgroup still there"],
)
def test_a_pod_that_replaces_one_that_is_ending_waits_for_it(
    ending: PodView | None, running: frozenset[str]
) -> None:
    before, new = _one_exclusive(), pod("new", "1")
    pods = [new] if ending is None else [ending, new]
    meanwhile = plan_node(machine(2, threads=1), policy(), before, pods, running)
    assert given(meanwhile.spec) == {"old/c0": "1"}
    (queued,) = meanwhile.queued
    assert (queued.pod.name, str(queued.cpus)) == ("new", "1")
    assert queued.ending == (("default", "old"),)
    assert not meanwhile.spec.refused
    after = plan_node(machine(2, threads=1), policy(), meanwhile.spec, [new], NO_UIDS)
    assert given(after.spec) == {"new/c0": "1"}
    assert not after.queued


def test_no_younger_pod_overtakes_one_that_waits() -> None:
    """Of the CPUs that `large` waits for, 3 are free; `other` leaves them, `small` has its own."""
    old, other, large = pod("old", "3"), pod("other", "1"), pod("large", "6")
    before = plan_node(machine(), policy(), None, [old], NO_UIDS).spec
    ending = replace(old, deleting=True)
    plan = plan_node(machine(), policy(), before, [ending, large, other, pod("more", "1")], NO_UIDS)
    assert [one.pod.name for one in plan.queued] == ["large", "other"]
    assert given(plan.spec) == {"old/c0": "1-3"}
    assert [one.pod for one in plan.spec.refused] == ["more"]
    assert shared(plan.spec) == "0,4-7", "what waits for a pod is shared until it is given"
    after = plan_node(machine(), policy(), plan.spec, [large, other], NO_UIDS).spec
    assert sorted(one.pod for one in after.containers) == ["large", "other"]


def test_a_pod_that_never_fits_is_refused_while_others_are_ending() -> None:
    pods = [replace(pod("old", "1"), deleting=True), pod("big", "2")]
    plan = plan_node(machine(2, threads=1), policy(), _one_exclusive(), pods, NO_UIDS)
    assert [refusal.pod for refusal in plan.spec.refused] == ["big"]
    assert not plan.queued


def test_cpus_that_went_offline_leave_the_assignment() -> None:
    a, b = pod("a", "2"), pod("b", "2")
    before = plan_node(machine(), policy(), None, [a, b], NO_UIDS).spec
    assert given(before) == {"a/c0": "2-3", "b/c0": "4-5"}
    whole = machine()
    fewer = replace(whole, cpus=tuple(cpu for cpu in whole.cpus if cpu.id not in {3, 4, 5}))
    after = plan_node(fewer, policy(), before, [a, b], NO_UIDS).spec
    assert given(after) == {"a/c0": "2", "b/c0": "6-7"}
    assert shared(after) == "0-1"


def test_the_shared_pool_keeps_a_cpu_when_a_policy_turns_strict_on_a_full_node() -> None:
    a = pod("a", "7")
    before = plan_node(machine(), policy(), None, [a], NO_UIDS).spec
    strict = policy(reserved={"cpus": "0", "strict": True})
    plan = plan_node(machine(), strict, before, [a], NO_UIDS)
    assert shared(plan.spec) == "0"
    _, (found,) = mark_outdated(resolve(machine(), strict), plan.spec, [a], edited=True)
    assert (found.pod, found.why) == ("a", "keeps a CPU that the shared pool lacks")
    after = plan_node(machine(), strict, plan.spec, [], NO_UIDS)
    assert shared(after.spec) == "1-7"


def test_an_assignment_that_leaves_no_cpu_at_all_is_not_written() -> None:
    a = pod("a", "7")
    before = plan_node(machine(), policy(), None, [a], NO_UIDS).spec
    whole = machine()
    last = replace(whole, cpus=tuple(cpu for cpu in whole.cpus if cpu.id))
    with pytest.raises(PolicyError, match="hold every CPU that is online"):
        plan_node(last, policy(reserved={"cpus": "1"}), before, [a], NO_UIDS)


def test_numa_nodes_without_memory_are_never_named() -> None:
    """Best effort may end with all NUMA nodes; the kernel refuses those without memory."""
    topology = machine(8, 2, 2)
    bare = replace(topology.numa_nodes[1], memory_bytes=0)
    topology = replace(topology, numa_nodes=(topology.numa_nodes[0], bare))
    fields = {"topology": {"policy": "BestEffort"}, "memory": {"policy": "Static"}}
    plan = plan_node(topology, policy(**fields), None, [pod("a", "6"), pod("b", "500m")], NO_UIDS)
    assert {str(entry.mems) for entry in plan.spec.containers} <= {"0", ""}
    assert given(plan.spec)["a/c0"] == "2-7"
