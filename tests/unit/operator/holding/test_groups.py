"""Groups of pods that wait for each other are found and told, and what is no such group is not."""

from dataclasses import replace

import pytest

from numapin_operator.holding.groups import (
    COUNT_SECONDS,
    STUCK_SECONDS,
    PartlyPlaced,
    groups_of,
    placed_of,
)
from numapin_operator.holding.telling import QUIET_SECONDS
from support.fakes.worlds.held_world import HeldWorld
from support.values.held_pods import held_view

CREATED = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")


async def two_groups(*kinds: str) -> HeldWorld:
    """Room for two pods; one of each controller is placed, and one of each waits."""
    world = HeldWorld(1)
    await world.ready()
    for number in range(2):
        for kind, uid in zip(kinds, ("one", "two"), strict=True):
            world.add(f"{uid}-{number}", "3", owner=f"{kind}/{uid}", bound=CREATED[number])
    await world.settle()
    for name in ("one-0", "two-0"):
        world.bind(name)
    await world.settle()
    return world


async def told_later(world: HeldWorld) -> list[str]:
    """What the pods that wait are told once the groups have been blocked for a while."""
    for seconds in (STUCK_SECONDS, QUIET_SECONDS):
        await world.operator.clock.advance(seconds)
        await world.settle()
    return [one.note for one in world.cluster.events if "GroupsBlocked" in one.note]


async def test_groups_that_wait_for_each_other_are_told_so() -> None:
    world = await two_groups("Job", "Job")
    assert {name for name in world.bodies if world.is_gated(name)} == {"one-1", "two-1"}
    assert not [one for one in world.cluster.events if "GroupsBlocked" in one.note], "too early"
    notes = await told_later(world)
    assert len(notes) == 2
    assert all("until one of them is deleted or suspended" in one for one in notes)
    assert all("NotEnoughCPUs on n0" in one for one in notes)


async def test_when_one_group_is_deleted_the_other_goes_on() -> None:
    world = await two_groups("Job", "MPIJob")
    assert len(await told_later(world)) == 2
    for name in ("one-0", "one-1"):
        world.delete(name)
    await world.settle()
    assert world.pinned("two-1") == "n0"


@pytest.mark.parametrize(
    "kinds", [("ReplicaSet", "ReplicaSet"), ("Job", "StatefulSet"), ("DaemonSet", "Job")]
)
async def test_pods_that_serve_alone_are_no_groups(kinds: tuple[str, str]) -> None:
    assert await told_later(await two_groups(*kinds)) == []


async def test_a_group_of_which_nothing_is_placed_blocks_nobody() -> None:
    world = HeldWorld(1)
    await world.ready()
    for name, uid in (("a", "one"), ("b", "one"), ("c", "one"), ("d", "two")):
        world.add(name, "3", owner=f"Job/{uid}")
        await world.settle()
    assert {name for name in world.bodies if world.is_gated(name)} == {"c", "d"}
    assert await told_later(world) == []


def test_one_group_is_asked_about_nothing() -> None:
    assert groups_of([held_view(one, owner="Job/one") for one in ("a", "b")]) == frozenset()


def test_a_group_that_was_complete_for_a_moment_begins_again() -> None:
    partly = PartlyPlaced()
    for seconds, groups in ((0.0, {"a", "b"}), (0.5, {"a"}), (1.0, {"a", "b"}), (1.9, {"a", "b"})):
        partly.note(groups, STUCK_SECONDS * seconds)
        assert partly.stuck == frozenset()
    partly.note({"a", "b"}, STUCK_SECONDS * 2)
    assert partly.stuck == {"a", "b"}


async def test_pods_are_counted_now_and_then() -> None:
    """A change somewhere is no reason to read the pods of all nodes."""
    world = await two_groups("Job", "Job")
    counted = world.holding._partly.next
    await world.settle()
    assert world.holding._partly.next == counted
    await world.operator.clock.advance(COUNT_SECONDS)
    await world.settle()
    assert world.holding._partly.next > counted


def test_a_pod_that_has_ended_has_no_place() -> None:
    pod = held_view("a", owner="Job/one").pod
    assert placed_of({"one", "two"}, [pod]) == {"one"}
    assert placed_of({"one", "two"}, [replace(pod, terminal=True)]) == set()
    assert placed_of({"two"}, [pod]) == set()
