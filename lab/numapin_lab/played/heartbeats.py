"""What kubelets write when nothing happens: Leases every 10 s, a Node's status every 5 minutes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import cycle

from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import LEASES, NODES, Key

LEASE_SECONDS, STATUS_SECONDS = 10.0, 300.0
"""Source: KubeletConfiguration, a quarter of `nodeLeaseDurationSeconds` (40) and
`nodeStatusReportFrequency`."""

NAMESPACE = "kube-node-lease"

Write = Callable[[str], Awaitable[None]]


async def beat(api: ApiClient, names: Sequence[str]) -> None:
    """Write all heartbeats, evenly spread, until cancelled; late ones are left out."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_spread(names, LEASE_SECONDS, lambda name: _renew(api, name)))
        tasks.create_task(_spread(names, STATUS_SECONDS, lambda name: _report(api, name)))


async def _spread(names: Sequence[str], period_seconds: float, write: Write) -> None:
    """Call `write` for each name once in each period."""
    for name in cycle(names):
        with suppress(ClientError):
            await write(name)
        await asyncio.sleep(period_seconds / len(names))


async def _renew(api: ApiClient, name: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
    try:
        await api.merge_patch(LEASES, Key(name, NAMESPACE), {"spec": spec})
    except NotFoundError:
        metadata = {"name": name, "namespace": NAMESPACE}
        await api.create(LEASES, {"metadata": metadata, "spec": spec})


async def _report(api: ApiClient, name: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    patch = {"status": {"conditions": [ready | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    await api.merge_patch(NODES, Key(name), patch, subresource="status")
