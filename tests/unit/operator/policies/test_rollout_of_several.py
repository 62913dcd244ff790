"""A roll-out where several policies govern nodes in turn, and where the operator is restarted."""

from typing import Any

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_operator.nodes.eviction.evictable import candidates
from support.fakes.worlds.rollout_world import AFTER, BEFORE, NODES, World, first_in_force
from support.values.operator import (
    flat_topology,
    node_view,
)


@pytest.fixture
async def world() -> World:
    return await first_in_force()


async def test_a_canary_takes_its_nodes_and_gives_them_back(world: World) -> None:
    for name in NODES[:2]:
        world.operator.state.put_node(node_view(name, {"canary": "yes"}))
    await world.apply("canary", AFTER | {"nodeSelector": {"canary": "yes"}, "priority": 1})
    await world.answer()
    await world.answer()
    assert world.changed() == set(NODES[:2])
    assert world.reason("Ready", "canary") == Reason.IN_FORCE
    del world.cluster.policies["canary"]
    await world.settle()
    assert len(world.changed()) == 1  # they come back one after the other
    await world.answer()
    assert world.changed() == set()


OTHER: dict[str, Any] = AFTER | {"priority": -1}


"""Another policy, under which the nodes come when the first one does not govern them any more."""


async def test_an_edit_after_a_faulty_one_is_paced(world: World) -> None:
    await world.apply("policy", BEFORE | {"cpuQuota": "Halved"})
    await world.apply("policy", AFTER)
    assert len(world.changed()) == 1


@pytest.mark.parametrize("edit", [{"priority": -2}, {"nodeSelector": {"pool": "none"}}, None])
async def test_nodes_that_come_under_another_policy_are_paced(
    world: World, edit: dict[str, Any] | None
) -> None:
    await world.apply("other", OTHER)
    if edit is None:
        del world.cluster.policies["policy"]
        await world.settle()
    else:
        await world.apply("policy", BEFORE | edit)
    for number in range(1, len(NODES)):
        assert len(world.changed()) == number
        await world.add_pod(f"new-{number}", NODES[-1], "1")  # placed whoever's turn it is
        assert f"new-{number}" in world.held(NODES[-1]) or number > 4
        await world.answer(world.changed())
    await world.answer()
    assert world.reason("Ready", "other") in (Reason.IN_FORCE, Reason.WAITING_FOR_CONTAINERS)


async def test_no_node_comes_under_a_policy_that_stalls_one(world: World) -> None:
    await world.apply("other", OTHER)
    del world.cluster.policies["policy"]
    await world.settle()
    (first,) = world.changed()
    await world.stall(first)
    for _ in range(3):
        world.operator = world.started()
        await world.settle()
        await world.answer(set(NODES) - {first})
        assert world.changed() == {first}
    await world.add_pod("new", NODES[-1])  # the policy of this node is not known any more
    assert (world.held(NODES[-1]), world.reserved(NODES[-1])) == ({"new": "2-3"}, "0-1")


async def test_nodes_that_labels_bring_to_a_policy_are_paced(world: World) -> None:
    selecting = AFTER | {"nodeSelector": {"pool": "x"}, "priority": 1}
    await world.apply("other", selecting)
    world.operator.state.put_node(node_view(NODES[0], {"pool": "x"}))
    await world.settle()
    assert world.changed() == {NODES[0]}  # a single one changes at once
    await world.answer()
    for name in NODES:
        world.operator.state.put_node(node_view(name, {"pool": "x"}))
    await world.settle()
    assert len(world.changed()) == 2


async def test_a_policy_that_is_created_again_is_another_one(world: World) -> None:
    del world.cluster.policies["policy"]
    await world.apply("policy", AFTER)
    assert world.cluster.policies["policy"]["metadata"]["generation"] == 1
    assert len(world.changed()) == 1


async def test_a_policy_created_again_evicts_no_pod_before_its_node_has_changed(
    world: World,
) -> None:
    for node in NODES:
        await world.add_pod(f"vast-on-{node}", node, cpu="7")
    await world.answer()
    del world.cluster.policies["policy"]
    await world.apply("policy", BEFORE | {"onUnsatisfiable": "Evict"})
    assert len([node for node in NODES if list(candidates(world.operator.state, node))]) == 1


async def test_an_edit_while_its_nodes_wait_for_another_policy_changes_none(world: World) -> None:
    await world.apply("other", AFTER | {"priority": 1})
    (first,) = world.changed()
    await world.stall(first)
    await world.apply("policy", BEFORE | {"reserved": {"count": 6}})
    for restarts in range(3):
        assert {world.reserved(name) for name in set(NODES) - {first}} == {"0-1"}
        if restarts < 2:
            world.operator = world.started()
            await world.settle()
    del world.cluster.policies["other"]
    await world.settle()
    assert [world.reserved(name) for name in NODES].count("0-5") <= 2


async def test_a_node_waits_by_its_own_policy_however_many_there_are(world: World) -> None:
    await world.apply("policy", AFTER | {"rollout": {"maxConcurrent": 5}})
    middle = world.changed()
    await world.answer(middle)  # five more change
    for number in range(70):
        await world.apply(f"policy-{number}", BEFORE | {"nodeSelector": {"pool": "none"}})
    await world.apply("policy", BEFORE | {"reserved": {"count": 6}})
    node = next(name for name in sorted(middle) if world.reserved(name) == "0-3")
    await world.add_pod("new", node)
    assert world.held(node) == {"new": "4-5"}


async def test_the_limit_follows_the_number_of_nodes(world: World) -> None:
    await world.apply("one", AFTER | {"nodeSelector": {"pool": "x"}, "priority": 1})
    for name in NODES[:1]:
        world.operator.state.put_node(node_view(name, {"pool": "x"}))
    await world.settle()  # it governs one node, so that it would have no limit
    for name in NODES:
        world.operator.state.put_node(node_view(name, {"pool": "x"}))
    await world.settle()
    assert len(world.changed()) == 1


async def test_a_restart_gives_no_further_turn(world: World) -> None:
    await world.apply("policy", AFTER | {"rollout": {"maxConcurrent": 3}})
    changing = world.changed()
    for _ in range(3):
        world.operator = world.started()
        await world.settle()
        assert world.changed() == changing


async def test_a_restart_gives_no_turn_after_a_node_that_cannot_change(world: World) -> None:
    others = set(NODES) - {NODES[2]}  # which have a CPU 99
    await world.answer(others, flat_topology(128))
    await world.answer(others, flat_topology(128))  # the layout of the hardware is written, too
    await world.apply("policy", BEFORE | {"reserved": {"cpus": "0-3,99"}})
    assert world.reserved(NODES[0]) == "0-3,99"
    await world.add_pod("new", NODES[1])  # now it waits behind the others
    await world.answer({NODES[0]}, flat_topology(128))
    assert world.status()["stalled"][0]["node"] == NODES[2]
    for _ in range(3):
        world.operator = world.started()
        await world.settle()
        assert {world.reserved(name) for name in NODES[1:]} == {"0-1"}
