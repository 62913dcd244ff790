"""What a page of metrics costs the operator."""

import asyncio

from numapin_benchmarks.scale.steps.scene import Scene
from numapin_benchmarks.scale.steps.used import Mark
from numapin_lab.played.operator_process import ask

PAGES = 60
PAUSE_SECONDS = 1.1
"""A page is made at most once a second."""


async def scrape(scene: Scene) -> None:
    """CPU time while pages of metrics are asked for, that of the idle operator included."""
    mark, series = Mark.now(scene), 0
    for _ in range(PAGES):
        answer = await asyncio.to_thread(ask, scene.operator.port, "/metrics")
        assert answer is not None
        lines = answer[1].splitlines()
        series = sum(not line.startswith("#") for line in lines)
        await asyncio.sleep(PAUSE_SECONDS)
    cost = mark.cost(scene)
    each_ms = round(cost["cpu_seconds"] / PAGES * 1000, 1)
    scene.figures["pages of metrics"] = {"series": series, "cpu_ms_each_at_most": each_ms} | cost
