"""Time that containers take to start with the start gate and without, and what waits cost a node.

    python -m numapin_benchmarks.start_gate [--starts N] [--at-once N]

etcd, kube-apiserver, containerd, runc and the enforcer are real. The benchmark plays the kubelet,
and the operator: it writes the NodeAssignment. A start is measured from the request to create a
container until the answer to the request to start it; its pod's sandbox is there before.

One after the other, in turns of one container each, a container that gets CPU 1 for itself:

    no gate    its assignment is there, and the spec has no start gate
    there      its assignment is there, and the runtime asks
    late       its assignment is written 0.5 s after the request to create it

Then many at once, one of each pod, each bound to NUMA node 0 (this machine has too few CPUs to give
each its own), under a fresh enforcer without the gate and then under a fresh one with it. A pod
whose assignment never comes waits for `startTimeout`, 1 s; with `writes` the NodeAssignment is
written ten times a second meanwhile, as for other pods. The memory of each enforcer is read after
its first crowd, so that both have had the same work, and after the last one.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from numapin_benchmarks.enforcing.trees import weight
from numapin_benchmarks.figures import HEADER, Figure, in_runs
from numapin_benchmarks.surroundings import load, progress
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet, Pod
from numapin_lab.processes.daemons import wait_until
from numapin_lab.processes.usage import peak_mib, resident_mib

RUNS: Final = 5
LATE_SECONDS: Final = 0.5
WRITE_SECONDS: Final = 0.1
PODS_AT_ONCE: Final = 8
"""So many sandboxes are made, or removed, at the same time."""

NO_GATE, THERE, LATE = "no gate", "there", "late"
GATE: Final = {"timeoutMilliseconds": 1000, "qosClasses": ["Guaranteed"], "memory": True}
OWN: Final = "Cpus_allowed_list:\t1"
SLEEP: Final = ("sleep", "1000")


@dataclass(frozen=True)
class Crowd:
    """Many containers that start at once.

    Attributes:
        name: what is special.
        gate: whether the runtime asks.
        missing: how many of the pods never get an assignment; -1 is all.
        writes: whether the operator writes other changes meanwhile, ten a second.
    """

    name: str
    gate: bool = True
    missing: int = 0
    writes: bool = False


WITHOUT: Final = (Crowd("no gate", gate=False),)
WITH: Final = (
    Crowd("all there"),
    Crowd("one never comes", missing=1),
    Crowd("none comes", missing=-1),
    Crowd("10 never come, writes", missing=10, writes=True),
)


@dataclass
class Bench:
    """One node with its control plane, and what was seen of it."""

    plane: ControlPlane
    kubelet: Kubelet
    seconds: dict[str, list[float]] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    async def write(self, lines: Sequence[Mapping[str, Any]], *, gate: bool, shared: str) -> int:
        """Write the NodeAssignment; returns its generation."""
        spec: dict[str, Any] = {"pools": {"reserved": "0", "shared": shared}, "containers": lines}
        spec |= {"startGate": GATE} if gate else {}
        return await asyncio.to_thread(weight.write, self.plane, spec)

    async def apply(
        self, lines: Sequence[Mapping[str, Any]] = (), *, gate: bool, shared: str = "0-1"
    ) -> None:
        """Write it, and wait until it is in force, and the runtime asks or does not."""
        generation = await self.write(lines, gate=gate, shared=shared)

        def in_force() -> bool:
            status = weight.status(self.plane)
            active = (status.get("startGate") or {}).get("active", False)
            return status.get("observedGeneration", 0) >= generation and active is gate

        await asyncio.to_thread(wait_until, in_force, "the assignment", weight.WAIT_SECONDS)

    async def started(self, pod: Pod, command: Sequence[str] = SLEEP) -> tuple[str, float]:
        """The id of a new container, and the seconds that its start took."""
        began = time.perf_counter()
        id_ = await self.kubelet.run(pod, "main", command)
        return id_, time.perf_counter() - began

    async def start_one(self, pod: Pod, way: str) -> None:
        """Start one container in one of the three ways, and remove it."""
        lines, gate = [weight.line(pod.uid, cpus="1", exclusive=True)], way != NO_GATE
        if way == LATE:
            await self.apply(gate=True)
            task = asyncio.create_task(self.started(pod, FIRST_ACT))
            await asyncio.sleep(LATE_SECONDS)
            await self.write(lines, gate=True, shared="0")
            id_, seconds = await task
        else:
            await self.apply(lines, gate=gate, shared="0")
            id_, seconds = await self.started(pod, FIRST_ACT)
        self.seconds.setdefault(way, []).append(seconds)
        self.own[way] = self.own.get(way, 0) + (await self._printed(pod) == OWN)
        await self.kubelet.remove_container(id_)
        self.kubelet.log(pod, "main").unlink()

    async def _printed(self, pod: Pod) -> str:
        def printed() -> bool:
            return bool(self.kubelet.output(pod, "main"))

        await asyncio.to_thread(wait_until, printed, "the program", weight.WAIT_SECONDS)
        return self.kubelet.output(pod, "main")

    async def _began_pinned(self, containers: int) -> int:
        """How many have begun with their sets, once the enforcer has said it of all."""
        found: dict[str, Any] = {}

        def is_complete() -> bool:
            found.update({"bornShared": ()} | (weight.status(self.plane).get("startGate") or {}))
            return int(found["bornPinned"]) + len(found["bornShared"]) == containers

        await asyncio.to_thread(wait_until, is_complete, "the report", weight.WAIT_SECONDS)
        return int(found["bornPinned"])

    async def crowd(self, pods: Sequence[Pod], crowd: Crowd) -> Iterator[Figure]:
        """Start a container of each pod at once, and remove them."""
        missing = crowd.missing if crowd.missing >= 0 else len(pods)
        lines = [weight.line(one.uid, mems="0", exclusive=False) for one in pods[missing:]]
        await self.apply(lines, gate=crowd.gate)
        progress(f"  {crowd.name}, load {load()}")
        began = time.perf_counter()
        async with _written(self, lines, is_wanted=crowd.writes):
            found = await asyncio.gather(*(self.started(pod) for pod in pods))
        seconds = time.perf_counter() - began
        await self.apply(lines, gate=crowd.gate)
        pinned = await self._began_pinned(len(lines)) if crowd.gate else 0
        await _few_at_once(self.kubelet.remove_container(id_) for id_, _ in found)
        name = f"{len(pods)} at once: {crowd.name}"
        note = f"began pinned: {pinned} of {len(lines)} assigned" if crowd.gate else ""
        return iter(
            (
                Figure(f"{name}, each", "s", [[one for _, one in found]]),
                Figure(f"{name}, all", "s", [[seconds]], note),
            )
        )


@asynccontextmanager
async def _written(
    bench: Bench, lines: Sequence[Mapping[str, Any]], *, is_wanted: bool
) -> AsyncIterator[None]:
    """Write changes of something else for the duration, as for other pods of the node."""

    async def write() -> None:
        for number in range(10**6):
            other = weight.line(f"00000000-1111-4111-8111-{number:012}", mems="0", exclusive=False)
            await bench.write([*lines, other], gate=True, shared="0-1")
            await asyncio.sleep(WRITE_SECONDS)

    task = asyncio.create_task(write()) if is_wanted else None
    yield
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _few_at_once(work: Iterator[Any]) -> list[Any]:
    free = asyncio.Semaphore(PODS_AT_ONCE)

    async def one(step: Any) -> Any:
        async with free:
            return await step

    return await asyncio.gather(*map(one, work))


async def one_by_one(bench: Bench, count: int) -> Iterator[Figure]:
    """Start so many containers in each of the three ways, which take turns."""
    pod = await bench.kubelet.run_pod("one")
    for _ in range(count):
        for way in (NO_GATE, THERE, LATE):
            await bench.start_one(pod, way)
    await bench.apply(gate=False)
    await bench.kubelet.remove_pod(pod)
    return iter(
        Figure(
            f"one start, {way}",
            "ms",
            in_runs([one * 1000 for one in seconds], RUNS),
            f"own CPU first: {bench.own[way]} of {count}",
        )
        for way, seconds in bench.seconds.items()
    )


def weighed(name: str, pid: int) -> Iterator[Figure]:
    """Memory of an enforcer."""
    for what, mib in (("RSS", resident_mib(pid)), ("peak RSS", peak_mib(pid))):
        yield Figure(f"enforcer: {what}, {name}", "MiB", [[mib]], "budget 50")


async def measure(starts: int, at_once: int) -> AsyncIterator[Figure]:
    """All figures."""
    with (
        tempfile.TemporaryDirectory(prefix="numapin-bench-") as name,
        weight.parts(Path(name)) as (plane, runtime),
    ):
        (Path(name) / "logs").mkdir()
        kubelet = Kubelet(runtime, runtime.cgroup.path, Path(name) / "logs")
        await kubelet.start()
        bench, asking = Bench(plane, kubelet), f"--nri-socket={runtime.nri_socket}"
        with weight.enforcer(plane, runtime, Path(name), asking):
            progress(f"  one after the other, load {load()}")
            for figure in await one_by_one(bench, starts):
                yield figure
        progress(f"  {at_once} sandboxes, load {load()}")
        pods = await _few_at_once(kubelet.run_pod(f"pod-{one}") for one in range(at_once))
        for subject, crowds in (("without", WITHOUT), ("with", WITH)):
            with weight.enforcer(plane, runtime, Path(name), asking) as pid:
                for crowd in crowds:
                    for figure in await bench.crowd(pods, crowd):
                        yield figure
                    if crowd in (crowds[0], crowds[-1]):
                        for figure in weighed(f"{subject}, {crowd.name}", pid):
                            yield figure
        await _few_at_once(kubelet.remove_pod(pod) for pod in tuple(kubelet.pods))
        await kubelet.stop()


async def show(starts: int, at_once: int) -> None:
    """Print a row for each figure as soon as it is there."""
    print(HEADER)
    async for figure in measure(starts, at_once):
        print(figure.row(), flush=True)
    print(f"load {load()} at the end, on {os.cpu_count()} CPUs")


def main() -> None:
    """Measure on parts of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=100, help="in each of the three ways")
    parser.add_argument("--at-once", type=int, default=200, help="containers of a crowd")
    options = parser.parse_args()
    asyncio.run(show(options.starts, options.at_once))


if __name__ == "__main__":
    main()
