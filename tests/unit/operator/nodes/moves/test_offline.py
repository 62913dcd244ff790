"""A container whose CPUs went offline gets others."""

import random
from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_operator.nodes.decide import Write
from numapin_operator.nodes.moves.changes import planned_moves
from numapin_operator.placement import PodView
from support.values.moves import MovingNode, container
from support.values.placement import granted_pod, machine, pod

WHOLE_CORES = {"options": {"fullPCPUsOnly": True}, "topology": {"policy": "None"}}


def granted(name: str, cpus: int) -> PodView:
    """A pod that was never edited, of whose kubelet it is known what it has granted."""
    return replace(granted_pod(name, (str(cpus), "64Mi")), edited=False)


def earlier(name: str, cpus: int) -> PodView:
    """A pod of a kubelet that does not say what it has granted: Kubernetes before 1.33."""
    return pod(name, str(cpus))


def node_with(cpus: dict[str, str], kind: Any = granted, **policy: Any) -> MovingNode:
    """Two NUMA nodes with 4 CPUs in 2 cores each, CPU 0 reserved; pods with these CPUs."""
    entries = [container(name, listed) for name, listed in cpus.items()]
    pods = [kind(name, len(CpuSet.parse(listed))) for name, listed in cpus.items()]
    bound = [replace(one, bound=f"2029-01-01T00:00:0{at}Z") for at, one in enumerate(pods)]
    return MovingNode(entries, bound, policy, machine(8, 2, 2))


def take_offline(node: MovingNode, cpus: CpuSet) -> None:
    left = tuple(cpu for cpu in node.topology.cpus if cpu.id not in cpus)
    offline = node.topology.offline | cpus
    node.topology = replace(node.topology, cpus=left, offline=offline)
    node.reported = {
        name: (str(CpuSet.parse(had) - cpus), mems) for name, (had, mems) in node.reported.items()
    }


def held(node: MovingNode) -> dict[str, str]:
    return {one["pod"]: one["cpus"] for one in node.spec["containers"]}


def settle(node: MovingNode, most: int = 60) -> list[dict[str, str]]:
    """Decide, report and wait until nothing changes; returns the CPUs after each write."""
    seen = list[dict[str, str]]()
    for _ in range(most):
        node.decide()
        if node.decision.write is Write.NOTHING and node.decision.again_at is None:
            return seen
        if node.decision.write is not Write.NOTHING:
            seen.append(held(node))
        node.report()
        is_written = node.decision.write is not Write.NOTHING
        at = None if is_written else node.decision.again_at
        node.wait(2 if at is None else at - node.now)
    raise AssertionError(f"the node does not come to rest: {seen[-4:]}")


def outdated(node: MovingNode) -> list[str]:
    return [one.pod for one in node.decide().containers if one.outdated]


@pytest.mark.parametrize("mode", ["Static", "Dynamic"])
def test_another_cpu_comes_to_the_rest_of_its_cpus(mode: str) -> None:
    """As in a resize, in every mode: the kubelet has granted as many as before."""
    node = node_with({"a": "2-3", "b": "4-5"}, mode=mode)
    take_offline(node, CpuSet([3]))
    assert settle(node)[0] == {"a": "1-2", "b": "4-5"}
    assert outdated(node) == []


@pytest.mark.parametrize("kind", [granted, earlier])
def test_it_moves_where_its_numa_node_has_none_left(kind: Any) -> None:
    node = node_with({"a": "2-3", "b": "1"}, kind)
    take_offline(node, CpuSet([3]))
    assert settle(node) == [
        {"a": "2", "b": "1"},  # outdated
        {"a": "2,4-5", "b": "1"},  # old and new
        {"a": "2,4-5", "b": "1"},  # the time is known
        {"a": "4-5", "b": "1"},
        {"a": "4-5", "b": "1"},  # the move is over
    ]
    assert outdated(node) == []
    assert node.spec.get("refusedResizes") is None


def test_without_grants_another_cpu_comes_in_mode_dynamic() -> None:
    node = node_with({"a": "2-3", "b": "4-5"}, earlier)
    take_offline(node, CpuSet([3]))
    assert settle(node)[-1] == {"a": "1-2", "b": "4-5"}
    assert node.entry("a").moving is None
    assert node.entry("a").moved_at is not None


@pytest.mark.parametrize("kind", [granted, earlier])
def test_part_of_a_core_is_left_for_a_whole_one(kind: Any) -> None:
    node = node_with({"a": "2-3", "b": "4-5"}, kind, **WHOLE_CORES)
    take_offline(node, CpuSet([3]))
    assert settle(node)[-1] == {"a": "6-7", "b": "4-5"}
    assert outdated(node) == []


@pytest.mark.parametrize("kind", [granted, earlier])
def test_what_is_not_moved_is_reported(kind: Any) -> None:
    node = node_with({"a": "2-3", "b": "1"}, kind, mode="Static")
    take_offline(node, CpuSet([3]))
    assert settle(node)[-1] == {"a": "2", "b": "1"}
    assert outdated(node) == ["a"]
    assert node.decision.outcome is not None
    assert node.decision.outcome.reason == "WaitingForContainers"
    assert (
        "default/a/c0 lost 1 CPU that went offline or that pods may not use"
        in node.decision.outcome.message
    )


def test_pause_and_budget_hold() -> None:
    dynamic = {"maxMovesPerMinute": 1, "movePause": "5m"}
    node = node_with({"a": "2-3", "b": "1"}, dynamic=dynamic)
    node.spec["containers"][0]["movedAt"] = "2030-01-01T00:00:00Z"
    take_offline(node, CpuSet([3]))
    node.decide()
    node.report()
    node.decide()
    assert node.entry("a").moving is None
    assert node.decision.again_at == node.now + 60
    node.wait(301)
    node.decide()
    assert node.entry("a").moving is not None


def test_a_pod_that_was_edited_only_grows() -> None:
    """Its resize may wait, which looks the same."""
    node = node_with({"a": "2-3", "b": "1"})
    node.pods = [replace(one, edited=True) for one in node.pods]
    take_offline(node, CpuSet([3]))
    assert settle(node)[-1] == {"a": "2", "b": "1"}
    (waits,) = node.spec["refusedResizes"]
    assert (waits["pod"], waits["reason"]) == ("a", "TopologyAffinityError")


def test_a_container_that_lost_all_is_placed_anew() -> None:
    node = node_with({"a": "2-3", "b": "1"})
    take_offline(node, CpuSet([2, 3]))
    assert settle(node)[-1] == {"a": "4-5", "b": "1"}


def test_people_are_told_why_it_moves() -> None:
    node = node_with({"a": "2-3", "b": "1"})
    take_offline(node, CpuSet([3]))
    node.decide()
    node.report()
    before = node.view().spec
    assert list(planned_moves(before, node.decide(), node.topology)) == [
        "moves default/a c0 from CPUs 2 to 4-5 as the policy would place it now"
    ]


def test_random_losses_come_to_rest_and_share_nothing() -> None:
    replaced = 0
    for seed in range(120):
        rng = random.Random(seed)
        ids = rng.sample(range(1, 16), 9)
        wanted = rng.choice(((1, 2, 3), (2, 2, 2), (1, 1, 4), (3, 3)))
        had = {
            f"p{at}": str(CpuSet(ids.pop() for _ in range(size))) for at, size in enumerate(wanted)
        }
        kind = rng.choice((granted, earlier))
        node = node_with(had, kind, topology={"policy": "None"})
        node = MovingNode(node.entries, node.pods, node.policy, machine(16, 2, 2))
        node.edit(
            topology={"policy": rng.choice(("None", "BestEffort", "Restricted", "SingleNUMANode"))},
            options={"fullPCPUsOnly": rng.random() < 0.3},
            dynamic={"movePause": rng.choice(("0s", "1m")), "maxMovesPerMinute": 3},
        )
        for _ in range(2):
            online = sorted(node.topology.online - CpuSet([0]))
            take_offline(node, CpuSet(rng.sample(online, rng.randint(1, 2))))
            steps = settle(node, 300)
            for step in steps:
                sets = [CpuSet.parse(one) for one in step.values()]
                assert len(CpuSet.union(sets)) == sum(map(len, sets)), seed
                assert CpuSet.union(sets) <= node.topology.online, seed
            assert not any(one.moving for one in node.decide().containers)
        lacking = [
            one
            for at, one in enumerate(node.pods)
            if len(CpuSet.parse(held(node).get(f"p{at}", ""))) < wanted[at]
        ]
        replaced += not lacking
    assert replaced > 60
