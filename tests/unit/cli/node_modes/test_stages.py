"""A few nodes at a time, and none after one that has failed."""

import asyncio

import pytest

from numapin_cli.node_modes.stages import Stages

NODES = [f"node-{number}" for number in range(7)]


class World:
    """Nodes that are released when the test says so."""

    def __init__(self, bad: str = "") -> None:
        self.bad, self.busy, self.most = bad, 0, 0
        self.begun: list[str] = []

    async def release(self, node: str) -> str:
        self.begun.append(node)
        self.busy += 1
        self.most = max(self.most, self.busy)
        for _ in range(3):
            await asyncio.sleep(0)
        self.busy -= 1
        return "it is broken" if node == self.bad else ""


def ignore(_: Stages, __: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (3, 3), (100, 7)])
async def test_so_many_at_a_time(at_once: int, most: int) -> None:
    world, stages = World(), Stages(NODES)
    await stages.carry_out(world.release, at_once, ignore)
    assert (world.most, stages.left, sorted(stages.done)) == (most, [], NODES)


async def test_none_is_begun_after_one_has_failed() -> None:
    world, stages, said = World("node-2"), Stages(NODES), list[tuple[str, int]]()
    await stages.carry_out(world.release, 2, lambda now, name: said.append((name, len(now.done))))
    assert world.begun == NODES[:4]
    assert stages.failed == {"node-2": "it is broken"}
    assert stages.left == ["node-2", *NODES[4:]]
    assert said == [("node-0", 1), ("node-1", 2), ("node-2", 2), ("node-3", 3)]


async def test_no_node_is_no_work() -> None:
    stages = Stages([])
    await stages.carry_out(World().release, 5, ignore)
    assert not stages.left
