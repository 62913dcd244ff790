"""What every measurement needs: the cluster, its figures, new pods."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_benchmarks.scale.notes import Notes
from numapin_benchmarks.scale.population import Size
from numapin_client.client import ApiClient
from numapin_client.errors import AlreadyExistsError, ClientError
from numapin_client.resources import PODS, Json, Key
from numapin_lab.played.control_plane import LargePlane
from numapin_lab.played.operator_process import OperatorRun
from numapin_lab.processes.daemons import wait_until

PATIENCE_SECONDS = 1800.0
SETTLE_SECONDS = 5.0
AGAIN_SECONDS = 0.5


@dataclass
class Scene:
    """What a measurement needs; `figures` is where it puts its results.

    `tokens` is the file with the logins of the played enforcers.
    """

    size: Size
    plane: LargePlane
    api: ApiClient
    notes: Notes
    folder: Path
    login: Path
    operator: OperatorRun
    tokens: Path
    figures: dict[str, Any] = field(default_factory=dict)

    def start_operator(self) -> None:
        """Start the operator again, after its end."""
        self.operator = OperatorRun(self.login, self.folder / "operator.log")

    async def until_leading(self) -> float:
        """Seconds from the operator's start until it is ready and leads."""
        await asyncio.to_thread(wait_until, self.operator.leads, "the lead", PATIENCE_SECONDS)
        return time.monotonic() - self.operator.started

    async def until_decided(self, uids: Sequence[str]) -> None:
        """Wait until all these pods have their CPUs or are refused, and nothing is written."""
        notes = self.notes
        await notes.until(lambda: all(map(notes.decided, uids)), PATIENCE_SECONDS)
        await notes.until_quiet(SETTLE_SECONDS, PATIENCE_SECONDS)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile (nearest rank) and maximum of seconds, in milliseconds."""
    ordered = sorted(values)
    rank = max(0, math.ceil(len(ordered) * 0.99) - 1)
    found = {"p50": ordered[len(ordered) // 2], "p99": ordered[rank], "max": ordered[-1]}
    return {f"{name}_ms": round(value * 1000, 1) for name, value in found.items()}


@dataclass
class Created:
    """Pods that were created: when each was, by UID, and how long the API server took for each."""

    bound: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    async def create(self, api: ApiClient, body: Json) -> None:
        """Create a pod that is bound to its node."""
        while True:
            begun = time.monotonic()
            try:
                created = await api.create(PODS, body)
                break
            except AlreadyExistsError:  # the API server did it, and was too slow to say so
                created = await api.get(PODS, Key.of(body))
                break
            except ClientError:
                await asyncio.sleep(AGAIN_SECONDS)
        now = time.monotonic()
        self.bound[created["metadata"]["uid"]] = now
        self.seconds.append(now - begun)

    async def create_all(self, api: ApiClient, bodies: Sequence[Json], rate: float) -> float:
        """Create pods evenly over time; returns the rate that was reached."""
        begun = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, body in enumerate(bodies, 1):
                tasks.create_task(self.create(api, body))
                await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
        return len(bodies) / (time.monotonic() - begun)
