"""From the operator's start until all pods have their CPUs, and the time after that."""

import asyncio
import math
from typing import Any

from numapin_benchmarks.scale.steps.scene import PATIENCE_SECONDS, SETTLE_SECONDS, Scene
from numapin_benchmarks.scale.steps.used import Mark
from numapin_benchmarks.surroundings import progress
from numapin_lab.played.enforcers import pod_uid


async def roll_out(scene: Scene) -> None:
    """The first start: until it is ready, until all pods of all nodes have their CPUs."""
    size, notes = scene.size, scene.notes
    mark = Mark(scene.operator.started, (), 0, scene.plane.cpu_seconds())
    ready = await scene.until_leading()
    scene.figures["start"] = {"ready_seconds": round(ready, 1)} | mark.cost(scene)
    progress(f"ready after {ready:.1f} s")
    wanted = {pod_uid(node, one) for node in size.names for one in range(size.exclusive)}
    done = await notes.until(
        lambda: len(notes.placed) + len(notes.refused) >= len(wanted), PATIENCE_SECONDS
    )
    last = max([*notes.placed.values(), *notes.refused.values()], default=math.inf)
    await notes.until_quiet(SETTLE_SECONDS, PATIENCE_SECONDS)
    cost = mark.cost(scene)
    figures: dict[str, Any] = {
        "complete": done,
        "seconds": round(last - scene.operator.started, 1),
        "placed": len(notes.placed),
        "refused": len(notes.refused),
        "cpu_ms_per_placed_pod": round(cost["cpu_seconds"] / max(1, len(notes.placed)) * 1000, 2),
        "cpu_ms_per_node": round(cost["cpu_seconds"] / size.nodes * 1000, 2),
    }
    scene.figures["all assigned"] = figures | cost
    progress(f"all assigned after {last - scene.operator.started:.1f} s")


async def idle(scene: Scene, seconds: float = 10.0) -> None:
    """CPU time while nothing happens but heartbeats."""
    mark = Mark.now(scene)
    await asyncio.sleep(seconds)
    cost = mark.cost(scene)
    percent = round(cost["cpu_seconds"] / seconds * 100, 2)
    scene.figures["idle"] = {"cpu_percent": percent} | cost
