"""The eldest pod that waits for moves gets its turn, whatever else wants CPUs or moves."""

import random
from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.duration import time_text
from numapin_operator.placement import PodView, Queued
from support.values.moves import MovingNode, container
from support.values.placement import machine, pod

PAUSE_SECONDS = 60
BOUND_SECONDS = PAUSE_SECONDS + 120
"""A pause and a minute's budget are over, and the moves made, within so long."""

MOVABLE = {"movable": "yes"}
HISTORIES = 60


def come(node: MovingNode, name: str, cpus: int) -> PodView:
    """A pod that is bound now."""
    fresh = replace(pod(name, str(cpus)), bound=time_text(node.now))
    node.pods.append(fresh)
    return fresh


def old(name: str, cpus: int, number: int) -> PodView:
    return replace(pod(name, str(cpus)), bound=f"2029-01-01T00:00:{number:02}Z", labels=MOVABLE)


def step(node: MovingNode, seconds: float = 2.5) -> None:
    node.decide()
    node.report()
    node.wait(seconds)


def placed(node: MovingNode) -> set[str]:
    return {one["pod"] for one in node.spec["containers"]}


def refused(node: MovingNode) -> set[str]:
    return {one["pod"] for one in node.spec.get("refused", ())}


def for_moves(node: MovingNode) -> list[str]:
    """The pods that wait for moves, the eldest first."""
    waiting = node.decision.waiting
    return [one.pod.name for one in waiting if isinstance(one, Queued) and one.moving]


def own_moves(node: MovingNode) -> set[str]:
    """The pods that move for their own good."""
    moving = (one for one in node.spec["containers"] if one.get("moving"))
    return {one["pod"] for one in moving if not one["moving"].get("pod")}


@pytest.mark.parametrize("outdated", [0, 3, 12])
def test_no_container_begins_to_move_for_its_own_good_while_a_pod_waits(outdated: int) -> None:
    """The pod needs two moves at once, as many as a minute has."""
    cpus = {f"o{n:02}": str(32 + n) for n in range(outdated)}
    cpus |= {"z": "1-2", "y": "16-22", "x0": "48-50", "x1": "51-53"}
    entries = [container(name, listed) for name, listed in cpus.items()]
    pods = [old(name, len(CpuSet.parse(cpus[name])), n) for n, name in enumerate(cpus)]
    dynamic = {"maxMovesPerMinute": 2, "movePause": "5m", "notice": "1s"}
    node = MovingNode(entries, pods, {"dynamic": dynamic}, machine(64, 1, 4))
    node.edit(reserved={"cpus": "0,32-43"})
    for _ in range(4):
        step(node)
    come(node, "elder", 16)
    before, begun = own_moves(node), node.now
    while "elder" not in placed(node):
        step(node)
        assert own_moves(node) <= before
        assert node.now - begun < BOUND_SECONDS


def paused(x: str, y: str, cpus: int) -> MovingNode:
    """A pod comes to two NUMA nodes of 8 CPUs; only x could make room, and was just moved."""
    entries = [container("x", x, movedAt="2030-01-01T00:00:00Z"), container("y", y)]
    dynamic = {"movePause": "5m", "notice": "1s", "podSelector": {"matchLabels": MOVABLE}}
    pods = [old("x", len(CpuSet.parse(x)), 0), old("y", len(CpuSet.parse(y)), 1)]
    pods[1] = replace(pods[1], labels={})
    node = MovingNode(entries, pods, {"dynamic": dynamic}, machine(16, 1, 2))
    come(node, "elder", cpus)
    node.wait(1)
    return node


def test_younger_pods_leave_what_the_eldest_waits_beside_and_where_its_movers_go() -> None:
    node = paused("1-2", "8-9", 7)
    for number in range(4):
        come(node, f"young{number}", 1)
    step(node)
    assert for_moves(node) == ["elder"]
    young = [CpuSet.parse(one["cpus"]) for one in node.spec["containers"] if one["pod"] > "y"]
    assert (len(young), CpuSet.union(young) <= CpuSet.parse("10-15")) == (4, True)
    node.wait(301)
    for _ in range(6):
        step(node)
    assert str(node.entry("elder").cpus) == "1-7"


def test_a_younger_pod_that_fits_after_the_moves_waits_for_them() -> None:
    """What x leaves is enough for both; what is free now is kept for the eldest."""
    node = paused("5-7", "8-11", 5)
    come(node, "young", 2)
    step(node)
    assert for_moves(node) == ["elder", "young"]
    assert not refused(node)
    node.wait(301)
    for _ in range(6):
        step(node)
    assert placed(node) == {"x", "y", "elder", "young"}


def test_no_moves_begin_for_a_younger_pod_while_the_eldest_waits() -> None:
    """The eldest needs both moves of a minute at once; one was made just now."""
    cpus = {"a": "1-3", "b": "8", "c": "9", "d": "16-18", "e": "24-27"}
    entries = [container(name, listed) for name, listed in cpus.items()]
    entries[-1]["movedAt"] = "2030-01-01T00:00:00Z"
    pods = [old(name, len(CpuSet.parse(listed)), 0) for name, listed in cpus.items()]
    dynamic = {"maxMovesPerMinute": 2, "movePause": "0s", "notice": "0s"}
    node = MovingNode(entries, pods, {"dynamic": dynamic}, machine(32, 1, 4))
    come(node, "elder", 8)
    node.wait(1)
    come(node, "younger", 6)
    begun: list[str] = []
    for _ in range(60):
        step(node)
        moving = (one["moving"] for one in node.spec["containers"] if one.get("moving"))
        begun += [one["pod"] for one in moving if one.get("pod")]
    assert list(dict.fromkeys(begun)) == ["elder", "younger"]
    assert placed(node) >= {"elder", "younger"}


def random_node(rng: random.Random) -> MovingNode:
    """A node on which pods came and went before anything waits, some outdated by an edit."""
    numa_nodes = rng.choice((2, 2, 3, 4))
    dynamic = {
        "maxMovesPerMinute": rng.choice((1, 2, 3, 6)),
        "movePause": f"{rng.choice((0, PAUSE_SECONDS))}s",
        "notice": rng.choice(("0s", "1s", "5s")),
    }
    topology = {"policy": rng.choice(("SingleNUMANode", "Restricted"))}
    node = MovingNode(
        [], [], {"dynamic": dynamic, "topology": topology}, machine(numa_nodes * 6, 1, numa_nodes)
    )
    for number in range(numa_nodes * 4):
        node.wait(1)
        come(node, f"old{number:02}", rng.choice((1, 1, 2, 2, 3)))
    step(node)
    for one in rng.sample(node.pods, len(node.pods) // 2):
        node.pods.remove(one)
        node.reported.pop(one.name, None)
    node.pods = [one for one in node.pods if one.name in placed(node)]
    if rng.random() < 0.4:
        node.edit(reserved={"cpus": f"0,{rng.randrange(1, numa_nodes * 6)}"})
    step(node, rng.choice((1, 61)))
    return node


def room(node: MovingNode) -> int:
    """As many CPUs as the scheduler still gives away."""
    reserved = len(CpuSet.parse(node.policy.get("reserved", {"cpus": "0"})["cpus"]))
    asked = sum(sum(one.whole_cpus for one in each.containers) for each in node.pods)
    return len(node.topology.cpus) - reserved - asked


@pytest.mark.parametrize("seed", range(4))
def test_the_eldest_is_never_overtaken_and_waits_for_a_bounded_time(seed: int) -> None:
    """Younger pods come as long as the scheduler lets them; nothing of the target goes."""
    waited = 0
    for history in range(HISTORIES):
        rng = random.Random(seed * HISTORIES + history)
        node = random_node(rng)
        while (left := room(node)) > 0 and not for_moves(node):
            come(node, f"pod{len(node.pods):03}", min(left, rng.choice((2, 3, 4, 5, 6))))
            step(node, 1)
        if not for_moves(node):
            continue
        waited += 1
        eldest, since = for_moves(node)[0], node.now
        while eldest not in placed(node):
            if (left := room(node)) > 0 and rng.random() < 0.5:
                come(node, f"young{len(node.pods):03}", min(left, rng.choice((1, 1, 2, 3))))
            moved = own_moves(node)
            step(node, rng.choice((0.5, 2, 7)))
            assert eldest in {*for_moves(node), *placed(node)}, (seed, history)
            assert eldest in placed(node) or own_moves(node) <= moved, (seed, history)
            assert node.now - since < BOUND_SECONDS, (seed, history)
    assert waited > HISTORIES // 6


def test_a_pod_waits_for_one_move_where_two_would_do_as_well_but_are_too_many() -> None:
    """Of 4 CPUs, 2 are free on NUMA node 0 and on 1: a and b could leave the first, or c the other.

    As long as younger pods leave one of both, the pod is not refused.
    """
    cpus = {"p": "1", "a": "4", "b": "5", "c": "6,10", "d": "11", "e": "9", "f": "12-17"}
    entries = [container(name, listed) for name, listed in cpus.items()]
    pods = [old(name, len(CpuSet.parse(cpus[name])), n) for n, name in enumerate(cpus)]
    dynamic = {"maxMovesPerMinute": 1, "movePause": "0s", "notice": "0s"}
    node = MovingNode(entries, pods, {"dynamic": dynamic}, machine(18, 1, 3))
    come(node, "elder", 4)
    step(node)
    assert node.moving("c").pod == "elder"
