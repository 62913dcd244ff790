"""Containers are moved to where the policy would place them now."""

import random
from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_operator.nodes.decide import Write
from numapin_operator.nodes.moves.changes import planned_moves
from support.values.moves import MovingNode, container
from support.values.placement import machine, pod

UNALIGNED = {"topology": {"policy": "None"}}


def node_with(cpus: dict[str, str], **policy: Any) -> MovingNode:
    """Two NUMA nodes with 4 CPUs each, CPU 0 reserved; pods with these CPUs, in their order."""
    entries = [container(name, listed) for name, listed in cpus.items()]
    pods = [pod(name, str(len(CpuSet.parse(listed)))) for name, listed in cpus.items()]
    bound = [replace(one, bound=f"2029-01-01T00:00:0{number}Z") for number, one in enumerate(pods)]
    return MovingNode(entries, bound, policy)


def settle(node: MovingNode, most: int = 40) -> list[dict[str, str]]:
    """Decide, report and wait until nothing changes; returns the CPUs after each write."""
    seen = [held(node)]
    for _ in range(most):
        node.decide()
        if node.decision.write is Write.NOTHING and node.decision.again_at is None:
            return seen
        if held(node) != seen[-1]:
            seen.append(held(node))
        node.report()
        is_written = node.decision.write is not Write.NOTHING
        at = None if is_written else node.decision.again_at
        node.wait(2 if at is None else at - node.now)
    raise AssertionError(f"the node does not come to rest: {seen[-4:]}")


def held(node: MovingNode) -> dict[str, str]:
    return {one["pod"]: one["cpus"] for one in node.spec["containers"]}


def test_a_container_moves_to_one_numa_node_when_the_policy_demands_one() -> None:
    node = node_with({"a": "3-4", "b": "1-2"}, **UNALIGNED)
    node.edit(topology={"policy": "SingleNUMANode"}, dynamic={"movePause": "0s"})
    assert settle(node) == [
        {"a": "3-4", "b": "1-2"},
        {"a": "3-5", "b": "1-2"},
        {"a": "4-5", "b": "1-2"},
    ]
    assert [one.outdated for one in node.decide().containers] == [None, None]


def test_cpus_that_are_reserved_now_leave_and_the_others_stay() -> None:
    node = node_with({"a": "2-3", "b": "4-5"})
    node.edit(reserved={"cpus": "0,2"})
    assert settle(node)[-1] == {"a": "1,3", "b": "4-5"}


def test_a_container_on_two_numa_nodes_moves_once_one_has_room() -> None:
    node = node_with({"a": "3-4", "b": "1-2", "c": "5-7"}, topology={"policy": "BestEffort"})
    assert settle(node)[-1] == {"a": "3-4", "b": "1-2", "c": "5-7"}
    node.pods = [one for one in node.pods if one.name != "c"]
    node.reported.pop("c")
    assert settle(node)[-1] == {"a": "4-5", "b": "1-2"}


@pytest.mark.parametrize(
    ("policy", "labels"),
    [
        ({"mode": "Static"}, {}),
        ({"dynamic": {"podSelector": {"matchLabels": {"movable": "yes"}}}}, {"movable": "no"}),
    ],
)
def test_what_may_not_move_stays(policy: dict[str, Any], labels: dict[str, str]) -> None:
    node = node_with({"a": "3-4"}, **UNALIGNED)
    node.pods = [replace(one, labels=labels) for one in node.pods]
    node.edit(topology={"policy": "SingleNUMANode"}, **policy)
    assert settle(node)[-1] == {"a": "3-4"}
    assert node.entry("a").outdated


def test_nothing_moves_where_it_would_not_help() -> None:
    node = node_with({"a": "3-4"})
    node.pods = [replace(one, selected=False) for one in node.pods]
    node.edit(pods={"selector": {"matchLabels": {"other": "yes"}}})
    assert settle(node) == [{"a": "3-4"}]
    assert node.entry("a").outdated
    full = node_with({"a": "3-4", "b": "1-2", "c": "5-7"}, **UNALIGNED)
    full.edit(topology={"policy": "SingleNUMANode"})
    assert settle(full)[-1] == {"a": "3-4", "b": "1-2", "c": "5-7"}


def test_containers_move_one_after_the_other_and_after_their_pause() -> None:
    node = node_with({"a": "1", "b": "2"})
    node.edit(reserved={"cpus": "0-2"}, dynamic={"maxMovesPerMinute": 1})
    seen = settle(node)
    assert seen[-1] == {"a": "4", "b": "3"}, "the youngest moves first, as for other pods"
    for one in seen:
        assert sum(len(CpuSet.parse(cpus)) > 1 for cpus in one.values()) <= 1
    first, second = node.entry("b").moved_at, node.entry("a").moved_at
    assert first == "2030-01-01T00:00:02Z"
    assert second is not None
    assert second >= "2030-01-01T00:01:02Z"


def test_a_pod_that_does_not_fit_comes_first() -> None:
    node = node_with({"a": "1-2", "b": "4-5"}, dynamic={"movePause": "0s"})
    node.pods.append(replace(pod("c", "3"), bound="2030-01-01T00:00:00Z"))
    node.decide()
    assert node.decision.waiting
    assert {one.pod for one in node.decide().containers if one.moving} == {"a"}
    assert node.moving("a").pod == "c"


def test_people_are_told_why() -> None:
    node = node_with({"a": "3-4"}, **UNALIGNED)
    node.edit(topology={"policy": "SingleNUMANode"})
    before = node.view().spec
    after = node.decide()
    assert node.moving("a").pod is None
    assert list(planned_moves(before, after, node.topology)) == [
        "moves default/a c0 from CPUs 3-4 to 1,3 as the policy would place it now"
    ]


def test_random_edits_come_to_rest_and_share_nothing() -> None:
    moved = 0
    for seed in range(150):
        rng = random.Random(seed)
        cpus = rng.sample(range(1, 12), 8)
        sizes = rng.choice(((1, 2, 3), (2, 2, 2), (1, 1, 4), (3, 3)))
        held_cpus: dict[str, str] = {}
        for number, size in enumerate(sizes):
            held_cpus[f"p{number}"] = str(CpuSet(cpus.pop() for _ in range(size)))
        node = node_with(held_cpus, topology={"policy": "None"})
        node = MovingNode(node.entries, node.pods, node.policy, machine(12, 2, 2))
        node.edit(
            reserved={"cpus": rng.choice(("0", "0-1", "0,6"))},
            topology={"policy": rng.choice(("None", "BestEffort", "Restricted", "SingleNUMANode"))},
            options={"fullPCPUsOnly": rng.random() < 0.3},
            dynamic={"movePause": rng.choice(("0s", "1m")), "maxMovesPerMinute": 3},
        )
        for step in settle(node, 200):
            union = CpuSet.union(map(CpuSet.parse, step.values()))
            assert len(union) == sum(len(CpuSet.parse(one)) for one in step.values()), seed
        for name, listed in held_cpus.items():
            assert len(CpuSet.parse(held(node)[name])) == len(CpuSet.parse(listed))
        moved += held(node) != held_cpus
        assert not any(one.moving for one in node.decide().containers)
    assert moved > 75
