"""An edited policy reaches a few nodes at a time, and no further one while one is stalled."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.topology import Topology
from numapin_client.resources import Key
from numapin_operator.nodes.eviction.evictable import candidates
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.operator import (
    condition,
    enforcer_status,
    flat_topology,
    node_view,
    pod_view,
)

NODES = tuple(f"node-{number:02}" for number in range(10))
BEFORE: dict[str, Any] = {"reserved": {"count": 2}, "releaseDelay": "0s"}
AFTER = BEFORE | {"reserved": {"count": 4}}


class World:
    """Ten nodes that one policy governs, and their operator."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.operator = self.started()

    def started(self) -> Operator:
        """An operator that knows nothing yet but the nodes."""
        operator = Operator(self.cluster)
        for name in NODES:
            operator.state.put_node(node_view(name))
        return operator

    async def settle(self) -> None:
        """Let the operator see everything and work until it is idle, and write the statuses."""
        for _ in range(3):
            self.operator.observe()
            await self.operator.work_until_idle()
            await self.operator.statuses.write(set(self.cluster.policies))

    async def answer(self, names: Iterable[str] = NODES, topology: Topology | None = None) -> None:
        """Have enforcers accept the newest specs."""
        for name in names:
            generation = self.cluster.assignments[name]["metadata"]["generation"]
            self.cluster.put_status(name, enforcer_status(generation, topology=topology))
        await self.settle()

    async def apply(self, name: str, spec: dict[str, Any]) -> None:
        self.cluster.put_policy(name, spec)
        await self.settle()

    async def stall(self, name: str) -> None:
        """Have an enforcer report that it cannot enforce its spec."""
        generation = self.cluster.assignments[name]["metadata"]["generation"]
        conditions = [condition("Ready", False), condition("Stalled", True, "KubeletStaticPolicy")]
        self.cluster.put_status(name, enforcer_status(generation, conditions=conditions))
        await self.settle()

    async def add_pod(self, name: str, node: str, cpu: str = "2") -> None:
        self.operator.state.put_pod(Key(name, "default"), pod_view(name, cpu, node=node))
        await self.settle()

    def reserved(self, node: str) -> str:
        found: str = self.cluster.assignments[node]["spec"]["pools"]["reserved"]
        return found

    def changed(self) -> set[str]:
        return {name for name in self.cluster.assignments if self.reserved(name) == "0-3"}

    def held(self, node: str) -> dict[str, str]:
        containers = self.cluster.assignments[node]["spec"]["containers"]
        return {one["pod"]: one["cpus"] for one in containers}

    def status(self, policy: str = "policy") -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.policies[policy]["status"]
        return found

    def reason(self, kind: str, policy: str = "policy") -> str:
        (found,) = (one for one in self.status(policy)["conditions"] if one["type"] == kind)
        return str(found["reason"])


@pytest.fixture
async def world() -> World:
    """The first generation is in force on all nodes."""
    made = World()
    await made.apply("policy", BEFORE)
    await made.answer()  # the hardware
    await made.answer()
    assert made.status()["rolledOut"]["generation"] == 1
    return made


async def test_the_first_policy_reaches_all_nodes_at_once(world: World) -> None:
    assert {world.reserved(name) for name in NODES} == {"0-1"}


async def test_one_node_follows_the_other(world: World) -> None:
    await world.apply("policy", AFTER)
    for number in range(1, len(NODES) + 1):
        assert len(world.changed()) == number
        assert world.reason("Ready") == Reason.WAITING_FOR_ENFORCER or number < len(NODES)
        await world.answer(world.changed())
    assert world.reason("Ready") == Reason.IN_FORCE
    assert world.status()["rolledOut"] == {
        "generation": 2,
        "spec": {"reserved": {"count": 4}, "releaseDelay": "0s"},
    }


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
    assert world.status()["rolledOut"]["generation"] == 2


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
    assert world.status()["rolledOut"]["generation"] == 2


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
    assert world.status()["rolledOut"]["generation"] == 2


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
    await world.apply("policy", BEFORE | {"isolation": "Partition"})
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
