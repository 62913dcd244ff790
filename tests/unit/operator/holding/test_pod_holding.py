"""Held pods from their gate to their node: with real plans, in random histories, and crashes."""

from typing import Any

import pytest

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_client.resources import Key
from numapin_operator.holding.controller import OPENED_SECONDS, WISH_SECONDS
from numapin_operator.nodes.reserving import decide_with_wishes
from support.fakes.worlds.held_world import HeldWorld
from support.values.operator import Body, pod_view


async def world_of(nodes: int = 1, spec: Body | None = None) -> HeldWorld:
    world = HeldWorld(nodes, spec)
    await world.ready()
    return world


def notes(world: HeldWorld, reason: str) -> list[str]:
    said = (*world.cluster.events, *world.cluster.notices)
    return [one.note for one in said if one.reason == reason]


async def test_a_pod_has_its_place_and_then_its_node() -> None:
    world = await world_of()
    world.add("a", "4")
    await world.look()
    assert world.lines("n0") == {}
    await world.plan()
    assert world.lines("n0") == {"a": CpuSet.parse("4-7")}
    assert world.is_gated("a")
    await world.settle()
    assert world.pinned("a") == "n0"
    world.bind("a")
    await world.settle()
    assert world.lines("n0") == {"a": CpuSet.parse("4-7")}


async def test_one_waits_and_says_why_until_another_ends() -> None:
    world = await world_of(spec={"topology": {"policy": "SingleNUMANode"}})
    world.add("a", "4")
    world.add("b", "4")
    await world.settle()
    assert (world.pinned("a"), world.is_gated("b")) == ("n0", True)
    [note] = notes(world, "Held")
    assert "TopologyAffinityError on n0" in note or "NotEnoughCPUs on n0" in note
    assert "stays pending" in note
    writes = world.cluster.writes
    await world.settle()
    assert len(notes(world, "Held")) == 1, "the same text is said once"
    assert world.cluster.writes == writes
    world.bind("a")
    await world.settle()
    world.delete("a")
    await world.settle()
    assert world.pinned("b") == "n0"


@pytest.mark.parametrize(("nodes", "expected"), [("Pack", {"n0"}), ("Spread", {"n0", "n1"})])
async def test_nodes_are_packed_or_spread(nodes: str, expected: set[str]) -> None:
    world = await world_of(2, {"placement": {"nodes": nodes}})
    for name in ("a", "b"):
        world.add(name)
        await world.settle()
    assert {world.pinned(name) for name in ("a", "b")} == expected


async def test_a_crash_after_the_place_is_written_opens_for_that_node() -> None:
    world = await world_of(2, {"placement": {"nodes": "Spread"}})
    world.add("a", "4")
    await world.look()
    await world.plan()
    [node] = [name for name in world.nodes if world.lines(name)]
    world.add("b", "2", bound="2025-01-01T00:00:00Z")
    await world.start()
    await world.settle()
    assert world.pinned("a") == node
    assert sum("a" in world.lines(name) for name in world.nodes) == 1
    world.check()


async def test_a_crash_after_the_gate_is_open_keeps_the_place() -> None:
    world = await world_of()
    world.add("a", "4")
    await world.settle()
    before = world.lines("n0")
    await world.start()
    world.add("b", "4")
    await world.settle()
    assert world.lines("n0") == before
    assert world.is_gated("b")


async def test_a_place_is_released_when_its_pod_is_gone() -> None:
    world = await world_of()
    world.add("a", "4")
    await world.settle()
    world.delete("a")
    await world.settle()
    assert world.lines("n0") == {}


async def test_a_place_is_released_when_its_pod_is_bound_elsewhere() -> None:
    world = await world_of(2)
    world.add("a", "4")
    await world.settle()
    other = "n1" if world.pinned("a") == "n0" else "n0"
    world.bind("a", other)
    await world.settle()
    assert [name for name in world.nodes if "a" in world.lines(name)] == [other]


async def test_an_opened_pod_that_is_not_bound_loses_its_place_and_is_told() -> None:
    world = await world_of()
    world.add("a", "4")
    await world.settle()
    await world.operator.clock.advance(OPENED_SECONDS - 1)
    await world.settle()
    assert world.lines("n0")
    await world.operator.clock.advance(1)
    await world.settle()
    assert world.lines("n0") == {}
    [note] = notes(world, "PlaceLost")
    assert "n0" in note
    world.bind("a")
    await world.settle()
    assert list(world.lines("n0")) == ["a"], "bound after all, it is an ordinary pod"


async def test_no_node_is_asked_again_for_a_wish_that_cannot_be_written() -> None:
    world = await world_of(2)
    world.add("a", "4")
    await world.look()
    held = world.operator.state.held
    [uid] = held.pods
    first = held.wished(uid)
    await world.look()
    assert held.wished(uid) == first
    await world.operator.clock.advance(WISH_SECONDS)
    await world.settle()
    assert world.pinned("a")
    assert sum("a" in world.lines(name) for name in world.nodes) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"namespace": {}}, "its namespace has no label numapin.io/hold=enabled"),
        ({"policy": {"onUnsatisfiable": "Share"}}, "no node that its selector"),
        ({"policy": {"mode": "None"}}, "no node that its selector"),
        ({"policy": {"mode": "Audit"}}, "no node that its selector"),
        ({"policy": {"pods": {"podSelector": {"matchLabels": {"a": "b"}}}}}, "no node that"),
        ({"pod": {"nodeSelector": {"no": "such"}}}, "no node that its selector"),
        ({"cpu": "1500m"}, "no node that its selector"),
        ({"pod": {"resourceClaims": [{"name": "c"}]}}, "by spec.resourceClaims too"),
    ],
    ids=str,
)
async def test_what_nothing_holds_is_opened_at_once(change: dict[str, Any], why: str) -> None:
    world = HeldWorld(1, change.get("policy"))
    world.namespace = change.get("namespace", world.namespace)
    await world.ready()
    world.add("a", change.get("cpu", "2"), spec=change.get("pod"))
    await world.settle()
    assert not world.is_gated("a")
    assert world.pinned("a") == ""
    assert world.lines("n0") == {}
    [note] = notes(world, "NotHeld")
    assert why in note


async def test_a_pod_with_gates_of_others_waits_for_them() -> None:
    world = await world_of()
    gates = [{"name": "numapin.io/placement"}, {"name": "other.io/quota"}]
    world.add("a", spec={"schedulingGates": gates})
    await world.settle()
    assert world.is_gated("a")
    assert world.lines("n0") == {}


async def test_a_policy_that_holds_no_more_opens_what_waits() -> None:
    world = await world_of()
    world.add("a", "4")
    world.add("b", "4")
    await world.settle()
    assert world.is_gated("b")
    world.cluster.put_policy("policy", {"reserved": {"cpus": "0"}})
    world.operator.observe()
    await world.plan()
    await world.settle()
    assert not world.is_gated("b")
    assert world.lines("n0").keys() == {"a"}, "what was opened for the node keeps its place"


async def test_with_shards_nothing_is_held() -> None:
    world = HeldWorld(1)
    await world.start()
    world.operator.state.is_divided = True
    world.operator.observe()
    await world.plan()
    world.add("a")
    await world.settle()
    assert not world.is_gated("a")


async def test_pods_that_are_wished_for_together_all_fit() -> None:
    """The older one is placed first, whatever their names are."""
    world = await world_of(spec={"topology": {"policy": "SingleNUMANode"}})
    world.add("z", "3", bound="2025-01-01T00:00:00Z")
    world.add("a", "3", bound="2026-01-01T00:00:00Z")
    world.add("b", "1", bound="2027-01-01T00:00:00Z")
    await world.look()
    state = world.operator.state
    assert [one.pod.name for one in state.held.wishes_for("n0")] == ["z", "a", "b"]
    picture, _ = decide_with_wishes(world.operator.controller.foresee("n0"))
    order = [one.name for one in sorted(picture.pods, key=lambda pod: pod.order)]
    assert order == ["z", "a", "b"], "a later one takes nothing from those before it"
    await world.settle()
    assert world.lines("n0").keys() == {"z", "a", "b"}


async def test_a_wish_that_gets_no_place_is_another_ones() -> None:
    """Between the wish and the plan of its node somebody else came."""
    world = await world_of(2)
    world.add("a", "4")
    await world.look()
    held = world.operator.state.held
    [uid] = held.pods
    first = held.wished(uid)
    assert first is not None
    taken = pod_view("other", "6", node=first)
    world.operator.state.put_pod(Key("other", "default"), taken)
    await world.plan()
    assert held.wished(uid) is None
    await world.settle()
    assert world.pinned("a") not in ("", first)


async def test_no_gate_is_opened_for_a_pod_without_a_place() -> None:
    world = await world_of()
    world.add("a", "8")
    await world.settle()
    [uid] = world.operator.state.held.pods
    world.holding._gates.open(uid)
    await world.open()
    assert world.is_gated("a")


async def test_a_pod_that_says_why_it_waits_is_not_told_again_by_the_next_operator() -> None:
    world = await world_of()
    world.add("a", "8")
    await world.settle()
    [note] = notes(world, "Held")
    text = note.split("; it stays")[0]
    world._patch("a", {"metadata": {"annotations": {names.HELD_ANNOTATION: text}}})
    await world.start()
    await world.settle()
    assert notes(world, "Held") == [note]
