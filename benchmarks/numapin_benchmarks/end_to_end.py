"""Time from a bound pod to its CPUs in force on a real kubelet; memory and CPU of the programs.

    python -m numapin_benchmarks.end_to_end [--pods N] [--idle-seconds S] [--dir LAB]

Starts a lab (or uses the running one in LAB) and creates Guaranteed pods one after the other, each
already bound to the node. For each pod it measures, from the API server's answer that it exists:

    decided    the NodeAssignment's spec with the pod's CPU is seen in a watch
    in force   its enforcer reports that all others have left that CPU, as read from the kernel
    running    its enforcer reports the container on that CPU (this waits for the kubelet)

How long these take depends most of all on the API server and the machine. So before each pod it
also measures a round trip: from sending a write of an annotation of the same NodeAssignment until
its event is seen in the same watch. A decision needs a watch event, a write and its event; in force
needs as much again. The goals count round trips: at the median, decided within 2 and in force
within 4.

Then both programs are idle, and their memory and CPU time are read from /proc. The limits beside
the figures are the project's budgets.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_api.nodeassignment import NodeAssignment
from numapin_client.client import ApiClient, connect
from numapin_client.login.find import find_login
from numapin_client.resources import NODE_ASSIGNMENTS, PODS, Json, Key
from numapin_lab.controlplane.node_objects import NodeWatch
from numapin_lab.lifecycle import LabFolder
from numapin_lab.processes.usage import cpu_seconds, resident_mib
from numapin_lab.running_lab import RunningLab, pod, policy

STAGES = ("decided", "in force", "running")
GOALS = {"decided": 2, "in force": 4}
"""Round trips of the API server at the median."""

ROUND_TRIP = "round trip"
ANNOTATION = "numapin.io/benchmark"
PAUSE_SECONDS = 0.1
"""From a round trip to the next pod, so that everybody has seen the annotation."""

PATIENCE_SECONDS = 60.0


@dataclass
class Watched:
    """The newest NodeAssignment of a watch, and when it arrived."""

    latest: NodeAssignment | None = None
    arrived: float = 0.0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def on_change(self, _: str, body: Json | None) -> None:
        """Take the newest version and the time of its arrival."""
        self.arrived = time.perf_counter()
        self.latest = NodeAssignment.model_validate(body) if body else None
        task = asyncio.ensure_future(self._wake())
        task.add_done_callback(lambda done: done.result())

    async def _wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, uid: str) -> dict[str, float]:
        """When each stage was first seen for the pod `uid`."""
        seen: dict[str, float] = {}
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            while len(seen) < len(STAGES):
                for stage in stages(self.latest, uid) - seen.keys():
                    seen[stage] = self.arrived
                if len(seen) < len(STAGES):
                    await self.changed.wait()
        return seen

    async def until_marked(self, mark: str) -> float:
        """When the NodeAssignment was first seen with this annotation."""
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            while self.latest is None or marked(self.latest) != mark:
                await self.changed.wait()
        return self.arrived

    async def until_free(self) -> None:
        """Return when no container is exclusive and that is in force."""
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            while not free(self.latest):
                await self.changed.wait()


def stages(assignment: NodeAssignment | None, uid: str) -> set[str]:
    """Which stages the pod `uid` has reached."""
    mine = [one for one in assignment.spec.containers if one.pod_uid == uid] if assignment else []
    if assignment is None or not mine:
        return set()
    reached, status = {"decided"}, assignment.status
    if status and status.pools and status.observed_generation == generation(assignment):
        if mine[0].cpus.isdisjoint(status.pools.shared):
            reached.add("in force")
        if any(one.pod_uid == uid and one.exclusive for one in status.containers):
            reached |= {"in force", "running"}
    return reached


def generation(assignment: NodeAssignment) -> int:
    """The generation of its spec."""
    found: int = assignment.metadata["generation"]
    return found


def marked(assignment: NodeAssignment) -> str | None:
    """The annotation of the round trips."""
    found: str | None = (assignment.metadata.get("annotations") or {}).get(ANNOTATION)
    return found


def free(assignment: NodeAssignment | None) -> bool:
    """Whether no CPU is exclusive, in spec and status."""
    status = assignment.status if assignment else None
    if assignment is None or status is None or assignment.spec.containers:
        return False
    return status.observed_generation == generation(assignment) and not status.running


async def round_trip(client: ApiClient, watched: Watched, node: str, mark: str) -> float:
    """Milliseconds from sending a write to the arrival of its event."""
    sent = time.perf_counter()
    patch = {"metadata": {"annotations": {ANNOTATION: mark}}}
    await client.merge_patch(NODE_ASSIGNMENTS, Key(node), patch)
    return (await watched.until_marked(mark) - sent) * 1000


async def start_pods(client: ApiClient, node: str, count: int) -> list[dict[str, float]]:
    """Create, watch and delete `count` pods; the milliseconds to each stage for each pod."""
    watched, times = Watched(), []
    following = NodeWatch(client, watched.on_change, node)
    running = asyncio.create_task(following.run(), name="assignments")
    await following.synced.wait()
    for number in range(count):
        await watched.until_free()
        trip = await round_trip(client, watched, node, str(number))
        await asyncio.sleep(PAUSE_SECONDS)
        body = pod(f"bench-{number}", cpu="1")
        body["spec"]["nodeName"] = node
        created = await client.create(PODS, body)
        bound = time.perf_counter()
        seen = await watched.until(created["metadata"]["uid"])
        stages_ms = {stage: (seen[stage] - bound) * 1000 for stage in STAGES}
        times.append({ROUND_TRIP: trip} | stages_ms)
        await client.delete(PODS, Key(f"bench-{number}", "default"))
        show_progress(number + 1, count)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return times


def show_progress(done: int, count: int) -> None:
    """One line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{done} of {count} pods", end="\n" if done == count else "", file=sys.stderr)


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of them lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def print_times(times: Sequence[Mapping[str, float]]) -> None:
    """A row for the round trip and each stage, with the medians in round trips."""
    print(f"{'bound to':<12}{'min':>9}{'p50':>9}{'p99':>9}{'max':>9}   ms, {len(times)} pods")
    trip = statistics.median(each[ROUND_TRIP] for each in times)
    for stage in (ROUND_TRIP, *STAGES):
        one = [each[stage] for each in times]
        figures = (min(one), statistics.median(one), percentile(one, 0.99), max(one))
        row = "".join(f"{figure:9.1f}" for figure in figures)
        trips = f"{figures[1] / trip:.1f} round trips" if stage != ROUND_TRIP else ""
        goal = f", goal {GOALS[stage]}" if stage in GOALS else ""
        print(f"{stage:<12}{row}   {trips}{goal}".rstrip())
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")


def print_costs(lab: RunningLab, seconds: float) -> None:
    """Print memory, and CPU time while idle."""
    limits = {"enforcer": "RSS < 60 MiB, idle < 0.2 %", "operator": ""}
    pids: dict[str, Any] = {name: lab.agent(name).daemon.pid() for name in limits}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    for name, pid in pids.items():
        idle = (cpu_seconds(pid) - before[name]) / seconds * 100
        figures = f"RSS {resident_mib(pid):6.1f} MiB, idle {idle:5.2f} % of a CPU"
        print(f"{name:<12}{figures} over {seconds:.0f} s   {limits[name]}")


async def measure(lab: RunningLab, count: int) -> None:
    """Start the pods one after the other and print the times."""
    login = find_login(str(lab.cluster.plane.kubeconfig), os.environ)
    async with connect(login) as client:
        print_times(await start_pods(client, lab.node, count))


def main() -> None:
    """Run on a new lab, or on the one in --dir."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    parser.add_argument("--dir", type=Path, help="a lab that stays up (default: a new one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = LabFolder((options.dir or Path(scratch)).absolute())
        try:
            lab = RunningLab(folder.up())
            lab.clear()
            lab.apply(policy("bench"))
            lab.wait_in_force()
            asyncio.run(measure(lab, options.pods))
            print_costs(lab, options.idle_seconds)
            lab.clear()
        finally:
            if options.dir is None:
                folder.down()


if __name__ == "__main__":
    main()
