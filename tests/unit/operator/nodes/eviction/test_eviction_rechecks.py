"""Whether a pod must still be evicted is checked again right before its eviction."""

from typing import Any

import pytest

from numapin_client.resources import Key
from numapin_operator.nodes.eviction.evictor import PAUSE_SECONDS
from support.fakes.worlds.eviction_world import EVICT, EvictionWorld, placed, refusal
from support.real.waiting import running
from support.values.operator import condition, pod_view, policy_body

HOUR = 3600.0


@pytest.fixture
def world() -> EvictionWorld:
    return EvictionWorld()


def edited_to_share(world: EvictionWorld) -> None:
    world.put_policy({}, version=11, generation=2)


def edited_to_none(world: EvictionWorld) -> None:
    world.put_policy(EVICT | {"mode": "None"}, version=11, generation=2)


def edited_to_audit(world: EvictionWorld) -> None:
    world.put_policy(EVICT | {"mode": "Audit"}, version=11, generation=2)


def deleted(world: EvictionWorld) -> None:
    world.state.drop_policy(policy_body(version=12))


def being_deleted(world: EvictionWorld) -> None:
    world.put_policy(EVICT, version=11, deleting=True)


def no_longer_selected(world: EvictionWorld) -> None:
    pods = {"podSelector": {"matchLabels": {"app": "other"}}}
    world.put_policy(EVICT | {"pods": pods}, version=11, generation=2)


def another_policy_governs(world: EvictionWorld) -> None:
    world.state.put_policy(policy_body("stronger", {"priority": 1}, version=11))


def pod_placed(world: EvictionWorld) -> None:
    world.plan(containers=[placed("b")])


def pod_ending(world: EvictionWorld) -> None:
    body = pod_view("b")
    world.state.drop_pod(Key("b", "default"), body.node)


def kubelet_pins(world: EvictionWorld) -> None:
    stalled = [condition("Stalled", reason="KubeletStaticPolicy")]
    world.plan(refusal("b"), conditions=stalled)


def node_gone(world: EvictionWorld) -> None:
    world.state.drop_node("node-1")


CHANGES = (
    edited_to_share,
    edited_to_none,
    edited_to_audit,
    deleted,
    being_deleted,
    no_longer_selected,
    another_policy_governs,
    pod_placed,
    pod_ending,
    kubelet_pins,
    node_gone,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
async def test_what_changed_while_a_pod_waited_is_respected(
    world: EvictionWorld, change: Any
) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.run_tasks()
        assert world.left() == ["b"]
        change(world)
        await world.clock.advance(HOUR)
    assert world.left() == ["b"]


async def test_who_does_not_lead_evicts_nothing_and_asks_again_when_it_leads(
    world: EvictionWorld,
) -> None:
    world.leading.clear()
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.advance(HOUR)
        assert world.left() == ["a", "b"]
    world.plan(refusal("b"), containers=[placed("a")])
    world.leading.set()
    async with running(world.evictor.run()):
        await world.clock.advance(HOUR)
    assert world.left() == ["a"]


async def test_another_pod_of_the_same_name_stays(world: EvictionWorld) -> None:
    world.refuse("a", "b")
    world.cluster.pods["default", "a"] = "uid-of-its-successor"
    async with running(world.evictor.run()):
        await world.clock.advance(2 * PAUSE_SECONDS)
    assert world.left() == ["a"]
