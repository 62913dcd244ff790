"""Random histories of held pods: no CPU is given twice, and no pod is lost."""

import random

import pytest

from numapin_api.cpuset import CpuSet
from support.fakes.worlds.held_world import HeldWorld


async def act_at_random(world: HeldWorld, chance: random.Random, step: int) -> None:
    """A user, a scheduler or an operator's end."""
    pods = list(world.bodies)
    match chance.randrange(8):
        case 0 | 1 | 2:
            created = f"2026-01-01T00:00:{step:02}Z"
            world.add(f"p{step}", str(chance.randint(1, 8)), bound=created)
        case 3 if pods:
            world.delete(chance.choice(pods))
        case 4 | 5:
            bind_opened(world, pods)
        case 6 if pods:
            name = chance.choice(pods)
            if world.is_gated(name):
                world._patch(name, {"spec": {"schedulingGates": None}})
                if chance.random() < 0.5:
                    world.bind(name, chance.choice(world.nodes))
        case _:
            await world.start()


def bind_opened(world: HeldWorld, pods: list[str], anywhere: str = "") -> None:
    for name in pods:
        is_open = not world.is_gated(name) and "nodeName" not in world.bodies[name]["spec"]
        if is_open and (node := world.pinned(name) or anywhere):
            world.bind(name, node)


@pytest.mark.parametrize("seed", range(40))
async def test_no_history_gives_a_cpu_twice_or_loses_a_pod(seed: int) -> None:
    """Users, a scheduler, gates opened by hand, and an operator that ends at any step."""
    chance = random.Random(seed)
    policy = chance.choice(["None", "SingleNUMANode", "Restricted"])
    world = HeldWorld(3, {"topology": {"policy": policy}})
    await world.ready()
    for step in range(25):
        await act_at_random(world, chance, step)
        for act in (world.look, world.plan, world.open):
            if chance.random() < 0.8:
                await act()
            world.check()
        if chance.random() < 0.5:
            world.enforce()
    bind_opened(world, list(world.bodies), "n0")
    await world.start()
    for _ in range(3):
        await world.settle()
        world.check()
    free = [7 - len(CpuSet.union(world.lines(node).values())) for node in world.nodes]
    for name, body in world.bodies.items():
        if world.is_gated(name) and policy == "None":
            cpus = int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            assert cpus > max(free), name
