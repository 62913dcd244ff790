"""What the processes have used in some time: CPU, memory, bytes in etcd, requests."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from numapin_benchmarks.scale.steps.scene import Scene
from numapin_lab.played.control_plane import Requests

WRITE_VERBS = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})
SHOWN = frozenset({"nodeassignments", "nodereports", "nodetopologies"} | {"cpupolicies", "events"})
"""What the operator and enforcers write; Leases are counted apart, pods are the benchmark's own."""

QUIET_SECONDS = 5.0
PUT_BYTES = "etcd_debugging_mvcc_total_put_size_in_bytes"
WAL_BYTES = "etcd_disk_wal_write_bytes_total"
FILE_BYTES = "etcd_mvcc_db_total_size_in_bytes"
USED_BYTES = "etcd_mvcc_db_total_size_in_use_in_bytes"
"""Source: etcd 3.6, `server/storage/mvcc/metrics.go`, `server/storage/wal/metrics.go`."""


@dataclass(frozen=True)
class Mark:
    """The values before a measurement."""

    at: float
    threads: Sequence[float]
    specs: int
    plane: dict[int, float]

    @classmethod
    def now(cls, scene: Scene) -> "Mark":
        """The values now; forgets the loop's silence so far."""
        scene.notes.read()
        scene.operator.silence.take()
        specs, plane = len(scene.notes.specs), scene.plane.cpu_seconds()
        return cls(time.monotonic(), scene.operator.thread_seconds(), specs, plane)

    def cost(self, scene: Scene) -> dict[str, Any]:
        """What the operator has used since."""
        now = scene.plane.cpu_seconds()
        plane = {pid: seconds - self.plane.get(pid, 0.0) for pid, seconds in now.items()}
        memory, silence = scene.operator.memory(), scene.operator.silence.take()
        used = [
            round(after - before, 2)
            for after, before in zip_longest(
                scene.operator.thread_seconds(), self.threads, fillvalue=0.0
            )
        ]
        return {
            "cpu_seconds": round(sum(used), 2),
            "thread_cpu_seconds": used,
            "plane_cpu_seconds": round(sum(plane.values()), 2),
            "silence_seconds": round(silence.late, 3),
            "collection_seconds": round(silence.collection, 3),
            "step_cpu_seconds": round(silence.step, 4),
            "step": silence.name,
            "spec_writes": len(scene.notes.specs) - self.specs,
            "rss_mib": round(memory.resident, 1),
            "pss_mib": round(memory.proportional, 1),
            "peak_mib": round(memory.peak, 1),
        }


@dataclass(frozen=True)
class Times:
    """The monotonic clock, and the CPU seconds of three processes so far."""

    seconds: float
    api: float
    etcd: float
    operator: float

    @classmethod
    def now(cls, scene: Scene) -> "Times":
        """The values now."""
        api, plane = scene.plane.apiserver_cpu_seconds(), sum(scene.plane.cpu_seconds().values())
        return cls(time.monotonic(), api, plane - api, sum(scene.operator.thread_seconds()))

    def plus(self, other: "Times", share: float) -> "Times":
        """The sum with a share of others; the time stays."""
        api, etcd = self.api + other.api * share, self.etcd + other.etcd * share
        return Times(self.seconds, api, etcd, self.operator + other.operator * share)


@dataclass(frozen=True)
class Moment:
    """What has been used so far, and what was asked for.

    The pages of metrics cost the API server CPU time too: a measurement begins after its first
    pages, and ends before its last ones.

    Attributes:
        ending, beginning: the times before and after the pages were read.
        put_bytes: of all keys and values that were put into etcd.
        wal_bytes: of etcd's write-ahead log.
        requests: that the API server has answered.
    """

    ending: Times
    beginning: Times
    put_bytes: float
    wal_bytes: float
    requests: Requests

    @classmethod
    async def now(cls, scene: Scene) -> "Moment":
        """The values now."""
        ending = Times.now(scene)
        metrics = await asyncio.to_thread(scene.plane.etcd_metrics)
        requests = await asyncio.to_thread(scene.plane.requests)
        return cls(ending, Times.now(scene), metrics[PUT_BYTES], metrics[WAL_BYTES], requests)


@dataclass(frozen=True)
class Served:
    """What was used in some time: differences of what `Moment` has."""

    times: Times
    put_bytes: float
    wal_bytes: float
    requests: Requests

    @classmethod
    async def since(cls, begun: Moment, scene: Scene) -> "Served":
        """What was used since then."""
        now = await Moment.now(scene)
        seconds = now.ending.seconds - begun.beginning.seconds
        times = replace(now.ending, seconds=seconds).plus(begun.beginning, -1.0)
        put, wal = now.put_bytes - begun.put_bytes, now.wal_bytes - begun.wal_bytes
        return cls(times, put, wal, now.requests - begun.requests)

    def without(self, idle: "Served") -> "Served":
        """Less what an idle cluster uses in the same time; requests stay."""
        share = self.times.seconds / idle.times.seconds
        put, wal = self.put_bytes - idle.put_bytes * share, self.wal_bytes - idle.wal_bytes * share
        return Served(self.times.plus(idle.times, -share), put, wal, self.requests)

    @property
    def api_percent(self) -> float:
        """The API server's share of one CPU."""
        return round(self.times.api / self.times.seconds * 100, 2)

    def writes(self) -> dict[str, int]:
        """Writing requests to what operator and enforcers write, by verb and resource."""
        return {
            f"{verb} {resource}/{part}".rstrip("/"): number
            for (verb, resource, part), number in sorted(self.requests.items())
            if verb in WRITE_VERBS and resource in SHOWN
        }


async def until_written(scene: Scene) -> None:
    """Wait until neither the operator nor the enforcers have written anything for a while."""
    before = -1
    while (now := await asyncio.to_thread(_writes_so_far, scene)) != before:
        before = now
        await asyncio.sleep(QUIET_SECONDS)


def _writes_so_far(scene: Scene) -> int:
    found = scene.plane.requests().items()
    return sum(n for (verb, what, _), n in found if verb in WRITE_VERBS and what in SHOWN)


async def served_during(scene: Scene, seconds: float) -> Served:
    """What is used in some seconds from now."""
    begun = await Moment.now(scene)
    await asyncio.sleep(seconds)
    return await Served.since(begun, scene)
