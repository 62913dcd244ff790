"""The measurements of one size, one after the other."""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from numapin_benchmarks.scale.notes import Notes
from numapin_benchmarks.scale.population import EXCLUSIVE_CPUS, Size, pod_body
from numapin_benchmarks.surroundings import progress
from numapin_client.client import ApiClient
from numapin_client.errors import AlreadyExistsError, ClientError, ConflictError
from numapin_client.resources import CPU_POLICIES, LEASES, PODS, Json, Key
from numapin_lab.played.control_plane import LargePlane
from numapin_lab.played.enforcers import pod_uid
from numapin_lab.played.operator_process import OperatorRun
from numapin_lab.processes.daemons import wait_until

POLICY = Key("scale")
LEASE = Key("numapin-operator", "numapin-system")
PATIENCE_SECONDS = 1800.0
SETTLE_SECONDS = 5.0
AGAIN_SECONDS = 0.5
WRITE_VERBS = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})


@dataclass
class Scene:
    """What a measurement needs; `figures` is where it puts its results."""

    size: Size
    plane: LargePlane
    api: ApiClient
    notes: Notes
    folder: Path
    login: Path
    operator: OperatorRun
    figures: dict[str, Any] = field(default_factory=dict)

    def start_operator(self) -> None:
        """Start the operator again, after its end."""
        self.operator = OperatorRun(self.login, self.folder / "operator.log")

    async def until_leading(self) -> float:
        """Seconds from the operator's start until it is ready and leads."""
        await asyncio.to_thread(wait_until, self.operator.leads, "the lead", PATIENCE_SECONDS)
        return time.monotonic() - self.operator.started


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


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile (nearest rank) and maximum of seconds, in milliseconds."""
    ordered = sorted(values)
    rank = max(0, math.ceil(len(ordered) * 0.99) - 1)
    found = {"p50": ordered[len(ordered) // 2], "p99": ordered[rank], "max": ordered[-1]}
    return {f"{name}_ms": round(value * 1000, 1) for name, value in found.items()}


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
    scene.figures["all assigned"] = {
        "complete": done,
        "seconds": round(last - scene.operator.started, 1),
        "placed": len(notes.placed),
        "refused": len(notes.refused),
        "cpu_ms_per_placed_pod": round(cost["cpu_seconds"] / max(1, len(notes.placed)) * 1000, 2),
        "cpu_ms_per_node": round(cost["cpu_seconds"] / size.nodes * 1000, 2),
    } | cost
    progress(f"all assigned after {last - scene.operator.started:.1f} s")


async def idle(scene: Scene, seconds: float = 10.0) -> None:
    """CPU time while nothing happens but heartbeats."""
    mark = Mark.now(scene)
    await asyncio.sleep(seconds)
    cost = mark.cost(scene)
    percent = round(cost["cpu_seconds"] / seconds * 100, 2)
    scene.figures["idle"] = {"cpu_percent": percent} | cost


async def churn(scene: Scene, rate: int, count: int) -> None:
    """New pods, evenly over time, each on a random node: from bound to written."""
    bound: dict[str, float] = {}
    created: list[float] = []
    before = await asyncio.to_thread(scene.plane.requests)
    mark, begun = Mark.now(scene), time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            node = random.choice(scene.size.names)
            cpu = EXCLUSIVE_CPUS[number % 2]
            body = pod_body(f"churn-{rate}-{number}", node, cpu)
            tasks.create_task(_bind(scene.api, body, bound, created))
            await asyncio.sleep(max(0.0, begun + (number + 1) / rate - time.monotonic()))
    notes = scene.notes
    sent = time.monotonic() - begun
    await notes.until(lambda: all(notes.decided(uid) for uid in bound), PATIENCE_SECONDS)
    await notes.until_quiet(SETTLE_SECONDS, PATIENCE_SECONDS)
    cost, after = mark.cost(scene), await asyncio.to_thread(scene.plane.requests)
    written = after - before
    waited = [(notes.decided(uid) or math.inf) - at for uid, at in bound.items()]
    assigned = sum(
        number
        for (verb, resource, part), number in written.items()
        if resource == "nodeassignments" and not part and verb in WRITE_VERBS
    )
    scene.figures[f"{rate} pods a second"] = (
        {
            "pods": count,
            "reached_rate": round(count / sent, 1),
            "refused": sum(uid in notes.refused for uid in bound),
            "create_ms": round(sorted(created)[count // 2] * 1000, 1),
            "cpu_ms_per_pod": round(cost["cpu_seconds"] / count * 1000, 2),
            "spec_writes_per_pod": round(assigned / count, 3),
            "writes": _writes(written),
        }
        | quantiles(waited)
        | cost
    )
    progress(f"{rate} pods a second: {quantiles(waited)}")


def _writes(requests: Any) -> dict[str, int]:
    """Writing requests to what the operator writes, by resource; pods are the benchmark's own."""
    shown = ("nodeassignments", "cpupolicies", "events", "leases")
    return {
        f"{verb} {resource}/{part}".rstrip("/"): number
        for (verb, resource, part), number in sorted(requests.items())
        if verb in WRITE_VERBS and resource in shown
    }


async def _bind(
    api: ApiClient, body: Json, bound: dict[str, float], created_in: list[float] | None = None
) -> None:
    """Create a pod; notes when, and how long the API server took."""
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
    bound[created["metadata"]["uid"]] = now
    if created_in is not None:
        created_in.append(now - begun)


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
    begun, bound = time.monotonic(), dict[str, float]()
    await _bind(scene.api, pod_body("after-restart", scene.size.names[-1], "1"), bound)
    notes = scene.notes
    await notes.until(lambda: all(notes.decided(uid) for uid in bound), PATIENCE_SECONDS)
    first = max(notes.decided(uid) or math.inf for uid in bound)
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
    begun, bound = time.monotonic(), dict[str, float]()
    for number in range(10):
        body = pod_body(f"after-410-{number}", random.choice(scene.size.names), "1")
        await _bind(scene.api, body, bound)
        await asyncio.sleep(0.2)
    notes = scene.notes
    await notes.until(lambda: all(notes.decided(uid) for uid in bound), PATIENCE_SECONDS)
    last = max(notes.decided(uid) or math.inf for uid in bound)
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
