"""An edited policy reaches a few nodes at a time, and no further one while one is stalled."""

from dataclasses import replace

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_operator.nodes.eviction.evictable import candidates
from support.fakes.worlds.rollout_world import AFTER, BEFORE, NODES, World, first_in_force
from support.values.operator import (
    node_view,
)


@pytest.fixture
async def world() -> World:
    return await first_in_force()


async def test_the_first_policy_reaches_all_nodes_at_once(world: World) -> None:
    assert {world.reserved(name) for name in NODES} == {"0-1"}


async def test_one_node_follows_the_other(world: World) -> None:
    await world.apply("policy", AFTER)
    for number in range(1, len(NODES) + 1):
        assert len(world.changed()) == number
        assert world.reason("Ready") == Reason.WAITING_FOR_ENFORCER or number < len(NODES)
        await world.answer(world.changed())
    assert world.reason("Ready") == Reason.IN_FORCE
    done = world.rolled_out()
    wanted = {"reserved": {"count": 4}, "releaseDelay": "0s"}
    assert (done.generation, done.spec.model_dump(by_alias=True, exclude_defaults=True)) == (
        2,
        wanted,
    )
    assert len(world.cluster.revisions) == 1, "the older one is deleted"


@pytest.mark.parametrize(("most", "first"), [(3, 3), ("25%", 3), ("100%", 10), (10, 10), (1, 1)])
async def test_so_many_change_at_the_same_time(world: World, most: object, first: int) -> None:
    await world.apply("policy", AFTER | {"rollout": {"maxConcurrent": most}})
    assert len(world.changed()) == first
    assert world.status().get("nodesInForce", 0) == 0
    await world.answer(world.changed())
    assert len(world.changed()) == min(2 * first, len(NODES))


async def test_the_status_says_how_many_wait_and_why(world: World) -> None:
    await world.apply("policy", AFTER)
    assert world.reason("Ready") == Reason.WAITING_FOR_ROLLOUT
    (found,) = (one for one in world.status()["conditions"] if one["type"] == "Reconciling")
    assert "9 nodes WaitingForRollout: node-01, node-02" in found["message"]
    assert "1 of the nodes change at a time (spec.rollout.maxConcurrent)" in found["message"]


async def test_new_pods_are_placed_by_what_is_in_force_where_they_run(world: World) -> None:
    await world.apply("policy", AFTER)
    (first,) = world.changed()
    for node in (first, NODES[-1]):
        await world.add_pod(f"pod-on-{node}", node)
    assert world.held(first) == {f"pod-on-{first}": "4-5"}
    assert world.held(NODES[-1]) == {f"pod-on-{NODES[-1]}": "2-3"}
    assert world.changed() == {first}


async def test_no_node_follows_one_that_became_stalled(world: World) -> None:
    await world.apply("policy", AFTER)
    (first,) = world.changed()
    await world.stall(first)
    assert world.changed() == {first}
    assert world.reason("Stalled") == Reason.NODES_STALLED
    await world.answer()
    assert len(world.changed()) == 2  # it recovered


async def test_an_edit_that_cannot_work_on_the_first_node_reaches_no_other(world: World) -> None:
    await world.apply("policy", BEFORE | {"reserved": {"cpus": "0-99"}})
    assert {world.reserved(name) for name in NODES} == {"0-1"}
    assert world.status()["nodesStalled"] == 1
    assert world.status()["stalled"][0]["reason"] == Reason.IMPOSSIBLE_ON_NODE


async def test_the_next_edit_goes_on_with_the_stalled_node(world: World) -> None:
    await world.apply("policy", AFTER)
    (first,) = world.changed()
    await world.stall(first)
    await world.apply("policy", BEFORE)
    assert world.changed() == set()
    for _ in NODES:
        await world.answer()
    assert world.reason("Ready") == Reason.IN_FORCE


async def test_a_node_that_was_stalled_before_stops_nothing(world: World) -> None:
    await world.stall(NODES[0])
    await world.apply("policy", AFTER)
    assert NODES[0] in world.changed()
    await world.stall(NODES[0])
    for _ in NODES:
        await world.answer(NODES[1:])
    assert world.changed() == set(NODES)
    assert world.status()["nodesStalled"] == 1
    assert world.rolled_out().generation == 2


async def test_mode_none_reaches_all_nodes_at_once(world: World) -> None:
    await world.apply("policy", BEFORE | {"mode": "None"})
    assert {world.cluster.assignments[name]["spec"]["mode"] for name in NODES} == {"None"}


async def test_a_node_that_is_not_ready_is_not_waited_for(world: World) -> None:
    for name in NODES[:5]:
        world.operator.state.put_node(replace(node_view(name), not_served=Reason.NODE_NOT_READY))
    await world.apply("policy", AFTER)
    assert world.changed() == set(NODES[:6])


async def test_a_new_node_without_hardware_does_not_hold_a_rollout_up(world: World) -> None:
    world.operator.state.put_node(node_view("new"))
    await world.apply("policy", AFTER | {"rollout": {"maxConcurrent": "100%"}})
    await world.answer()
    assert world.reason("Ready") == Reason.WAITING_FOR_TOPOLOGY
    assert world.rolled_out().generation == 2


async def test_a_deleted_node_makes_room(world: World) -> None:
    await world.apply("policy", AFTER)
    (first,) = world.changed()
    world.operator.state.drop_node(first)
    await world.operator.work_until_idle()
    await world.settle()
    assert len(world.changed() - {first}) == 1, "its assignment stays for a while"


async def test_a_restarted_operator_goes_on_where_the_last_one_was(world: World) -> None:
    await world.apply("policy", AFTER)
    (first,) = world.changed()
    world.operator = world.started()
    await world.settle()
    await world.add_pod("new", NODES[-1])
    assert world.held(NODES[-1]) == {"new": "2-3"}
    assert len(world.changed()) <= 2  # as documented: it learns who is changing while it plans
    for _ in range(2 * len(NODES)):
        await world.answer()
    assert world.changed() == set(NODES[:-1])
    assert first in world.changed()
    assert world.reason("Ready") == Reason.WAITING_FOR_CONTAINERS  # `new` has a reserved CPU
    assert world.rolled_out().generation == 2


async def test_a_generation_that_nobody_remembers_keeps_its_settings(world: World) -> None:
    await world.apply("policy", AFTER | {"rollout": {"maxConcurrent": 5}})
    middle = world.changed()
    await world.apply("policy", BEFORE | {"reserved": {"count": 6}})
    waiting = {name for name in middle if world.reserved(name) == "0-3"}
    assert waiting
    world.operator = world.started()
    await world.settle()
    kept = next(name for name in sorted(waiting, reverse=True) if world.reserved(name) == "0-3")
    await world.add_pod("new", kept)
    assert world.held(kept) == {"new": "4-5"}
    assert world.reserved(kept) == "0-3"
    for _ in range(2 * len(NODES)):
        await world.answer()
    assert {world.reserved(name) for name in NODES if name != kept} == {"0-5"}
    assert (world.reserved(kept), world.held(kept)) == ("0-3", {"new": "4-5"})  # until it ends


async def test_no_pod_is_evicted_before_its_node_has_changed(world: World) -> None:
    for node in NODES:
        await world.add_pod(f"vast-on-{node}", node, cpu="7")
    await world.answer()
    await world.apply("policy", BEFORE | {"onUnsatisfiable": "Evict"})
    evicted = [node for node in NODES if list(candidates(world.operator.state, node))]
    assert len(evicted) == 1
