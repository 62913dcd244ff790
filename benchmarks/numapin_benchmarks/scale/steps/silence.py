"""How soon a dead enforcer shows as Unknown. An outage of the API server must mark nobody."""

import asyncio
import time
from contextlib import ExitStack
from typing import Any

from numapin_api.conditions.reasons import ConditionType
from numapin_benchmarks.scale.steps.scene import PATIENCE_SECONDS, Scene
from numapin_benchmarks.surroundings import progress
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, Key
from numapin_enforcer.status.node_lease import LEASE_SECONDS, RENEW_SECONDS
from numapin_lab.played.leases import renewed

DEAD = 10
LOOK_SECONDS = 0.5
MARKED = "an enforcer is silent, its node is marked Unknown"


async def silence(scene: Scene, outage_seconds: float) -> None:
    """Enforcers of some nodes die; then the API server is away for a while, if it is not 0 s."""
    nodes = scene.size.nodes
    dead = max(1, min(DEAD, nodes // 10))
    plane, log = scene.plane, scene.folder / "leases.log"
    figures: dict[str, Any] = {"dead": dead}
    with ExitStack() as stack:
        stack.enter_context(renewed(plane.kubeconfig, log, 0, nodes - dead, scene.tokens))
        with renewed(plane.kubeconfig, log, nodes - dead, dead, scene.tokens):
            # All have renewed, and the time that a new lead gives each node is over.
            await asyncio.sleep(RENEW_SECONDS * 2 + LEASE_SECONDS)
            figures["marked_while_all_renewed"] = scene.operator.said(MARKED)
        seconds = await _until_unknown(scene, scene.size.names[-dead:])
        figures["unknown_after_seconds"] = [round(one, 1) for one in sorted(seconds)]
        figures["longest_seconds"] = round(max(seconds), 1)
        figures["marked"] = scene.operator.said(MARKED)
        progress(f"silence: {figures}")
        if outage_seconds:
            before, begun = scene.operator.said(MARKED), time.monotonic()
            await asyncio.to_thread(plane.interrupt_apiserver, outage_seconds)
            figures["outage_seconds"] = round(time.monotonic() - begun)
            await asyncio.sleep(2 * LEASE_SECONDS + RENEW_SECONDS)
            figures["marked_by_outage"] = scene.operator.said(MARKED) - before
            progress(f"outage: {figures}")
    scene.figures["silence"] = figures


async def _until_unknown(scene: Scene, nodes: list[str]) -> list[float]:
    """Seconds from now until each of these nodes is reported Unknown.

    Raises:
        TimeoutError: one is not, `PATIENCE_SECONDS` later.
    """
    begun, waiting, found = time.monotonic(), set(nodes), []
    while waiting:
        if time.monotonic() - begun > PATIENCE_SECONDS:
            raise TimeoutError(f"not reported Unknown: {', '.join(sorted(waiting))}")
        for node in sorted(waiting):
            # An older enforcer reports in the assignment; its NodeReport is empty.
            ready = _ready(await scene.api.get(NODE_REPORTS, Key(node)))
            ready = ready or _ready(await scene.api.get(NODE_ASSIGNMENTS, Key(node)))
            if ready == "Unknown":
                waiting.discard(node)
                found.append(time.monotonic() - begun)
        await asyncio.sleep(LOOK_SECONDS)
    return found


def _ready(body: dict[str, Any]) -> str:
    conditions = (body.get("status") or {}).get("conditions") or ()
    of_type = (one["status"] for one in conditions if one["type"] == ConditionType.READY)
    return next(of_type, "")
