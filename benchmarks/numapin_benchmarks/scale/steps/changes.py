"""Edits of a policy, a restart of the operator, another API server."""

import asyncio
import math
import random
import time
from typing import Any

from numapin_benchmarks.scale.population import pod_body
from numapin_benchmarks.scale.steps.scene import (
    PATIENCE_SECONDS,
    SETTLE_SECONDS,
    Created,
    Scene,
)
from numapin_benchmarks.scale.steps.used import Mark
from numapin_benchmarks.surroundings import progress
from numapin_client.errors import ConflictError
from numapin_client.resources import CPU_POLICIES, LEASES, Json, Key

POLICY = Key("scale")
LEASE = Key("numapin-operator", "numapin-system")


async def edit(scene: Scene, name: str, change: Json, concerned: int) -> None:
    """A policy is edited: how many specs are written, and when the last one is.

    It ends when the specs of as many nodes as are `concerned` have changed.
    """
    mark = Mark.now(scene)
    while True:
        body = await scene.api.get(CPU_POLICIES, POLICY)
        try:
            await scene.api.update(CPU_POLICIES, body | {"spec": body["spec"] | change})
            break
        except ConflictError:
            continue  # the operator has written the status in between
    begun = time.monotonic()
    notes = scene.notes
    await notes.until(lambda: len(notes.specs) >= mark.specs + concerned, PATIENCE_SECONDS)
    await notes.until_quiet(SETTLE_SECONDS * 2, PATIENCE_SECONDS)
    times = [at for _, at in notes.specs[mark.specs :]]
    seconds = round(max(times) - begun, 1) if times else 0.0
    scene.figures[name] = {"seconds": seconds} | mark.cost(scene)
    progress(f"{name}: {len(times)} specs in {seconds} s")


async def restart(scene: Scene) -> None:
    """The operator is stopped and started: when it leads, and that it writes nothing."""
    code = await asyncio.to_thread(scene.operator.stop)
    scene.notes.read()
    specs = len(scene.notes.specs)
    scene.start_operator()
    mark = Mark(scene.operator.started, (), specs, scene.plane.cpu_seconds())
    ready = await scene.until_leading()
    begun, made = time.monotonic(), Created()
    await made.create(scene.api, pod_body("after-restart", scene.size.names[-1], "1"))
    notes = scene.notes
    await notes.until(lambda: all(notes.decided(uid) for uid in made.bound), PATIENCE_SECONDS)
    first = max(notes.decided(uid) or math.inf for uid in made.bound)
    await notes.until_quiet(SETTLE_SECONDS * 2, PATIENCE_SECONDS)
    cost = mark.cost(scene)
    scene.figures["restart"] = (
        {
            "exit_status": code,
            "ready_seconds": round(ready, 1),
            "first_pod_seconds": round(first - begun, 2),
        }
        | cost
        | {"spec_writes": cost["spec_writes"] - 1}
    )
    progress(f"restarted: leads after {ready:.1f} s")


async def relist(scene: Scene) -> None:
    """Another API server takes over, and answers every watch with 410."""
    before = await scene.api.get(LEASES, LEASE)
    mark = Mark.now(scene)
    gap = await asyncio.to_thread(scene.plane.replace_apiserver)
    begun, made = time.monotonic(), Created()
    for number in range(10):
        body = pod_body(f"after-410-{number}", random.choice(scene.size.names), "1")
        await made.create(scene.api, body)
        await asyncio.sleep(0.2)
    notes = scene.notes
    await notes.until(lambda: all(notes.decided(uid) for uid in made.bound), PATIENCE_SECONDS)
    last = max(notes.decided(uid) or math.inf for uid in made.bound)
    await notes.until_quiet(SETTLE_SECONDS * 3, PATIENCE_SECONDS)
    after = await scene.api.get(LEASES, LEASE)
    requests = await asyncio.to_thread(scene.plane.requests)
    scene.figures["relist after 410"] = {
        "without_server_seconds": round(gap, 2),
        "seconds": round(last - begun, 1),
        "lead_kept": _term(before) == _term(after) and not scene.operator.said("no longer leading"),
        "lists": {
            resource: number
            for (verb, resource, _), number in sorted(requests.items())
            if verb == "LIST" and resource in ("pods", "nodes", "nodeassignments", "cpupolicies")
        },
    } | mark.cost(scene)
    progress(f"relisted: {scene.figures['relist after 410']}")


def _term(lease: Json) -> tuple[Any, Any]:
    spec = lease.get("spec") or {}
    return spec.get("holderIdentity"), spec.get("leaseTransitions")
