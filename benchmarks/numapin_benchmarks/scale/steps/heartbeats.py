"""What the enforcers' Leases cost the API server, beside the heartbeat that was before them."""

import asyncio
import time
from contextlib import ExitStack
from typing import Any

from numapin_api import names
from numapin_benchmarks.scale.steps.scene import Scene
from numapin_benchmarks.scale.steps.used import (
    FILE_BYTES,
    USED_BYTES,
    Moment,
    Served,
    served_during,
    until_written,
)
from numapin_benchmarks.surroundings import progress
from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS, Key
from numapin_enforcer.status.node_lease import RENEW_SECONDS
from numapin_lab.played.leases import renewed
from numapin_lab.played.node_logins import as_nodes, writes_as

WINDOW_SECONDS = 60.0
BEFORE_SECONDS = 300.0
"""How often `lastPassTime` was written, before there were Leases."""

PATCHES = 300
PATCH_SECONDS = 0.1


async def heartbeats(scene: Scene) -> None:
    """The idle cluster without Leases, with them, and with patches of `lastPassTime`."""
    await until_written(scene)
    idle = await served_during(scene, WINDOW_SECONDS)
    with ExitStack() as stack:
        stack.enter_context(
            renewed(
                scene.plane.kubeconfig,
                scene.folder / "leases.log",
                0,
                scene.size.nodes,
                scene.tokens,
            )
        )
        await asyncio.sleep(RENEW_SECONDS * 2)  # they begin at a random time, and are created first
        leases = await served_during(scene, WINDOW_SECONDS)
    count = _renewals(leases) - _renewals(idle)
    leases = leases.without(idle)
    login = as_nodes(kubeconfig_login(str(scene.plane.kubeconfig)), scene.tokens)
    async with connect(login) as api:
        begun = await Moment.now(scene)
        await _patch(api, scene.size.names)
        patches = (await Served.since(begun, scene)).without(idle)
    nodes = scene.size.nodes
    lease_percent, seconds = leases.api_percent, leases.times.seconds
    patch_ms = patches.times.api / PATCHES * 1000
    patch_percent = patch_ms * nodes / BEFORE_SECONDS / 10
    metrics = await asyncio.to_thread(scene.plane.etcd_metrics)
    figures: dict[str, Any] = {
        "leases_a_second": round(count / seconds, 1),
        "lease_api_ms": round(leases.times.api / max(1, count) * 1000, 2),
        "lease_api_percent": lease_percent,
        "lease_etcd_percent": round(leases.times.etcd / seconds * 100, 2),
        "lease_operator_percent": round(leases.times.operator / seconds * 100, 2),
        "lease_etcd_mb_an_hour": round(leases.put_bytes / seconds * 3600 / 1e6, 1),
        "lease_wal_mb_an_hour": round(leases.wal_bytes / seconds * 3600 / 1e6, 1),
        "patches_a_second": round(nodes / BEFORE_SECONDS, 2),
        "patch_api_ms": round(patch_ms, 2),
        "patch_api_percent": round(patch_percent, 2),
        "patch_etcd_mb_an_hour": round(
            patches.put_bytes / PATCHES * nodes * 3600 / BEFORE_SECONDS / 1e6, 1
        ),
        "lease_to_patch": round(lease_percent / patch_percent, 2),
        "idle_api_percent": idle.api_percent,
        "etcd_file_mb": round(metrics[FILE_BYTES] / 1e6, 1),
        "etcd_used_mb": round(metrics[USED_BYTES] / 1e6, 1),
    }
    scene.figures["heartbeats"] = figures
    progress(f"heartbeats: {figures}")


def _renewals(served: Served) -> int:
    found = served.requests.items()
    return sum(n for (verb, what, _), n in found if verb == "PATCH" and what == "leases")


async def _patch(api: ApiClient, nodes: list[str]) -> None:
    """Write the heartbeat that was before Leases, at a rate."""
    begun = time.monotonic()
    for number in range(PATCHES):
        node = nodes[number % len(nodes)]
        writes_as.set(node)
        seconds = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + number))
        await api.merge_patch(
            NODE_ASSIGNMENTS,
            Key(node),
            {"status": {"lastPassTime": seconds}},
            subresource="status",
            field_manager=names.ENFORCER_FIELD_MANAGER,
        )
        await asyncio.sleep(max(0.0, begun + (number + 1) * PATCH_SECONDS - time.monotonic()))
