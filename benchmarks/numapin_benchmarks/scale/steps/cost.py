"""What a placed pod costs the API server and etcd, beside the creation of that pod.

First pods are created that get no CPUs of their own, since they ask for one and a half; then as
many that get some. They differ in nothing else. So the second cost, less the first, is that of
placing: the operator's writes and the enforcers' reports. What an idle cluster uses is taken off
both. It is CPU time of the processes, so a busy machine changes it little; but the API server's
search for garbage costs as much as some hundred writes, so fewer than 200 pods say little.
"""

import random
from typing import Any

from numapin_benchmarks.scale.population import EXCLUSIVE_CPUS, pod_body
from numapin_benchmarks.scale.steps.scene import Created, Scene
from numapin_benchmarks.scale.steps.used import Moment, Served, served_during, until_written
from numapin_benchmarks.surroundings import progress
from numapin_client.resources import Json

IDLE_SECONDS = 30.0
SHARED_CPUS = ("1500m", "2500m")
HOUR_SECONDS = 3600
USUAL_RATE = 20
"""Pods a second for which bytes an hour are given."""


async def cost(scene: Scene, rate: float, count: int) -> None:
    """Create pods without and with CPUs of their own, and compare."""
    await until_written(scene)
    idle, refused_before = await served_during(scene, IDLE_SECONDS), len(scene.notes.refused)
    shared = (await _create(scene, "shared", SHARED_CPUS, rate, count)).without(idle)
    placed = (await _create(scene, "placed", EXCLUSIVE_CPUS[:2], rate, count)).without(idle)
    create_ms = shared.times.api / count * 1000
    place_ms = placed.times.api / count * 1000 - create_ms
    operator_ms = (placed.times.operator - shared.times.operator) / count * 1000
    refused = len(scene.notes.refused) - refused_before
    writes = {name: round(number / count, 3) for name, number in placed.writes().items()}
    figures: dict[str, Any] = {
        "pods": count,
        "rate": rate,
        "refused": refused,
        "exclusive_on_a_node": round(scene.size.exclusive + count / scene.size.nodes / 2, 1),
        "create_api_ms": round(create_ms, 2),
        "place_api_ms": round(place_ms, 2),
        "place_to_create": round(place_ms / create_ms, 2),
        "place_etcd_ms": round((placed.times.etcd - shared.times.etcd) / count * 1000, 2),
        "place_operator_ms": round(operator_ms, 2),
        "create_etcd_kb": round(shared.put_bytes / count / 1e3, 1),
        "place_etcd_kb": round((placed.put_bytes - shared.put_bytes) / count / 1e3, 1),
        "create_wal_kb": round(shared.wal_bytes / count / 1e3, 1),
        "place_wal_kb": round((placed.wal_bytes - shared.wal_bytes) / count / 1e3, 1),
        "idle_api_percent": idle.api_percent,
        "writes_per_pod": sum(writes.values()),
        "writes": writes,
    }
    pace = USUAL_RATE * HOUR_SECONDS / 1e9
    figures[f"etcd_gb_an_hour_at_{USUAL_RATE}_pods_a_second"] = round(
        (placed.put_bytes / count) * pace, 2
    )
    scene.figures["a placed pod"] = figures
    progress(f"a placed pod: {figures}")


async def _create(
    scene: Scene, kind: str, cpus: tuple[str, ...], rate: float, count: int
) -> Served:
    """Create pods, as many on each node; what was used until nothing is written any more."""
    names, made = list(scene.size.names), Created()
    random.shuffle(names)
    bodies: list[Json] = [
        pod_body(f"cost-{kind}-{one}", names[one % len(names)], cpus[one % len(cpus)])
        for one in range(count)
    ]
    begun = await Moment.now(scene)
    await made.create_all(scene.api, bodies, rate)
    await scene.until_decided([*made.bound] if kind == "placed" else [])
    await until_written(scene)
    return await Served.since(begun, scene)
