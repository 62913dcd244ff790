"""A paused node stays as it is; a released one is under no policy."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.names import NODE_MODE_ANNOTATION
from numapin_operator.nodes.eviction.evictable import candidates
from numapin_operator.observe.records import NodeView
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.fakes.worlds.held_world import HeldWorld
from support.fakes.worlds.rollout_world import AFTER, NODES, World, first_in_force
from support.values.operator import node_view

Metadata = dict[str, Any]


def decoded(annotations: object) -> NodeView:
    return NodeView.decode({"metadata": {"name": "n", "uid": "u", "annotations": annotations}})


@pytest.mark.parametrize(
    ("annotations", "paused", "released"),
    [
        pytest.param(None, False, False, id="none"),
        pytest.param("text", False, False, id="no-annotations-at-all"),
        pytest.param({"numapin.io/refused": "Paused"}, False, False, id="another-one"),
        pytest.param({NODE_MODE_ANNOTATION: "Paused"}, True, False, id="paused"),
        pytest.param({NODE_MODE_ANNOTATION: "Released"}, False, True, id="released"),
        pytest.param({NODE_MODE_ANNOTATION: "released"}, True, False, id="misspelt"),
        pytest.param({NODE_MODE_ANNOTATION: ""}, True, False, id="empty"),
        pytest.param({NODE_MODE_ANNOTATION: ["Released"]}, True, False, id="a-list"),
    ],
)
def test_what_the_annotation_says(annotations: object, paused: bool, released: bool) -> None:
    node = decoded(annotations)
    assert (bool(node.paused), node.released) == (paused, released)


def test_an_unknown_value_is_said_in_a_few_printable_characters() -> None:
    why = decoded({NODE_MODE_ANNOTATION: "\x1b[2J" + "x" * 200_000}).paused
    assert len(why) < 250
    assert why.isprintable()
    assert "neither Paused nor Released and counts as Paused" in why


def set_mode(operator: Operator, *, paused: bool = False, released: bool = False) -> None:
    mode = replace(node_view(), paused="it is paused" if paused else "", released=released)
    operator.state.put_node(mode)


@pytest.fixture
async def operator() -> Operator:
    made = await operator_of_one_node(FakeCluster())
    made.add_pod("before")
    await settle(made)
    return made


async def settle(operator: Operator) -> None:
    for _ in range(2):
        await operator.work_until_idle()
        if "node-1" in operator.cluster.assignments:
            report(operator.cluster, "uid-before", "uid-new")
        operator.observe()
    await operator.work_until_idle()


async def test_nothing_is_written_while_a_node_is_paused(operator: Operator) -> None:
    set_mode(operator, paused=True)
    before, writes = spec(operator.cluster), operator.cluster.writes
    operator.cluster.put_policy("policy", {"reserved": {"count": 4}, "releaseDelay": "0s"})
    operator.observe()
    operator.add_pod("new")
    await settle(operator)
    assert spec(operator.cluster) == before
    assert operator.cluster.writes == writes
    set_mode(operator)
    await settle(operator)
    assert held(operator.cluster).keys() == {"before", "new"}
    assert spec(operator.cluster)["policy"]["generation"] == 2


async def test_a_new_pod_of_a_paused_node_is_told_once(operator: Operator) -> None:
    set_mode(operator, paused=True)
    operator.cluster.notices.clear()
    operator.add_pod("new")
    operator.add_pod("half", "500m")
    await settle(operator)
    operator.add_pod("large", "64")
    await settle(operator)
    told = [(one.pod, one.reason, one.is_warning) for one in operator.cluster.notices]
    assert told == [("new", "NodePaused", False), ("large", "NodePaused", False)]
    assert "until its node is paused no more: it is paused" in operator.cluster.notices[0].note


async def test_the_policy_says_that_a_node_is_paused(operator: Operator) -> None:
    set_mode(operator, paused=True)
    await settle(operator)
    await operator.statuses.write({"policy"})
    status = operator.cluster.policies["policy"]["status"]
    (ready,) = (one for one in status["conditions"] if one["type"] == "Ready")
    assert (status["nodesNotServed"], ready["status"]) == (1, "True")
    assert "1 node NodePaused: node-1 (it is paused)" in ready["message"]


async def test_a_paused_node_keeps_what_it_has_without_its_policy(operator: Operator) -> None:
    set_mode(operator, paused=True)
    before = spec(operator.cluster)
    del operator.cluster.policies["policy"]
    operator.observe()
    await operator.clock.advance(3600)
    await settle(operator)
    assert spec(operator.cluster) == before
    set_mode(operator)
    await settle(operator)
    assert "node-1" not in operator.cluster.assignments


async def test_a_release_that_was_announced_has_its_whole_delay_after_a_pause() -> None:
    operator = await operator_of_one_node(FakeCluster())
    operator.cluster.put_policy("policy", {"reserved": {"count": 2}, "releaseDelay": "60s"})
    operator.observe()
    await settle(operator)
    del operator.cluster.policies["policy"]
    operator.observe()
    await settle(operator)
    announced = spec(operator.cluster)["releaseAt"]
    set_mode(operator, paused=True)
    await operator.clock.advance(600)
    await settle(operator)
    assert spec(operator.cluster)["releaseAt"] == announced
    set_mode(operator)
    await settle(operator)
    assert spec(operator.cluster)["releaseAt"] > announced
    assert "pools" in spec(operator.cluster)


async def test_an_assignment_that_is_deleted_comes_back_as_it_was(operator: Operator) -> None:
    set_mode(operator, paused=True)
    await settle(operator)
    before = operator.cluster.assignments.pop("node-1")["spec"]
    operator.observe()
    await settle(operator)
    assert spec(operator.cluster)["containers"] == before["containers"]


async def test_refused_pods_of_a_paused_node_are_not_evicted() -> None:
    operator = await operator_of_one_node(FakeCluster())
    evicting = {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"}
    operator.cluster.put_policy("policy", evicting)
    operator.observe()
    operator.add_pod("large", "64")
    await settle(operator)
    assert [one.pod.name for one in candidates(operator.state, "node-1")] == ["large"]
    set_mode(operator, paused=True)
    assert list(candidates(operator.state, "node-1")) == []


async def test_a_held_pod_gets_no_place_on_a_paused_node() -> None:
    world = HeldWorld(1)
    await world.ready()
    world.operator.state.put_node(replace(world.operator.state.nodes["n0"], paused="so"))
    world.add("a", "4")
    await world.settle()
    assert world.is_gated("a")
    assert "it is paused" in world.cluster.events[-1].note
    world.operator.state.put_node(replace(world.operator.state.nodes["n0"], paused=""))
    await world.settle()
    assert world.pinned("a") == "n0"


@pytest.fixture
async def world() -> World:
    return await first_in_force()


def put(world: World, *names: str, paused: str = "", released: bool = False) -> None:
    for name in names:
        world.operator.state.put_node(replace(node_view(name), paused=paused, released=released))


async def test_a_rollout_passes_by_nodes_that_are_paused(world: World) -> None:
    paused = NODES[:4]
    put(world, *paused, paused="so")
    await world.apply("policy", AFTER)
    for number in range(1, 7):
        assert len(world.changed()) == number
        await world.answer(world.changed())
    assert world.changed() == set(NODES[4:])
    assert world.reason("Ready") == "InForce"


async def test_nodes_that_are_resumed_take_their_turns(world: World) -> None:
    paused = NODES[:4]
    put(world, *paused, paused="so")
    await world.apply("policy", AFTER)
    for _ in NODES:
        await world.answer(world.changed())
    put(world, *paused)
    await world.settle()
    for number in range(7, 11):
        assert len(world.changed()) == number
        await world.answer(world.changed())


async def test_a_released_node_is_given_back_and_comes_back(operator: Operator) -> None:
    set_mode(operator, released=True)
    await settle(operator)
    assert "node-1" not in operator.cluster.assignments
    operator.add_pod("new")
    await settle(operator)
    assert "node-1" not in operator.cluster.assignments
    set_mode(operator)
    await settle(operator)
    await settle(operator)
    assert held(operator.cluster).keys() == {"before", "new"}


async def test_a_released_node_keeps_its_cpus_for_the_delay_of_its_policy() -> None:
    operator = await operator_of_one_node(FakeCluster())
    operator.cluster.put_policy("policy", {"reserved": {"count": 2}, "releaseDelay": "60s"})
    operator.observe()
    await settle(operator)
    set_mode(operator, released=True)
    await settle(operator)
    assert "releaseAt" in spec(operator.cluster)
    set_mode(operator)
    await settle(operator)
    assert "releaseAt" not in spec(operator.cluster)
