"""Cost of a local copy of all pods: our informer and the official client.

    python -m numapin_benchmarks.informer [--pods N] [--events N] [--runs N] [--peer]

A server in a separate process lists N pods of about 5 KB in chunks of 500, then sends changes of
random pods as fast as the client reads them. Each run is a new process; the kinds alternate:

- `ours, slim`: the informer with five fields of each pod;
- `ours, planner`: the informer with the fields that the planner needs (`parse_pod`);
- `official` (with --peer): list and watch of the `kubernetes` package with the same five fields.

List: seconds from the first request to the complete copy. RSS: of the process at that time, and its
growth since the imports. Events: received events in a second; CPU: of the client for each event.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from numapin_benchmarks.informer.pod_server import CHUNK, pod
from numapin_lab.processes.usage import resident_mib

# Each part imports what it measures, and nothing that others do.
# ruff: noqa: PLC0415


@dataclass(frozen=True)
class Result:
    """What one run cost."""

    list_seconds: float
    list_cpu_seconds: float
    rss_mib: float
    grown_mib: float
    events_per_second: float
    cpu_us_per_event: float


def slim(body: dict[str, Any]) -> tuple[str, ...]:
    """Five fields of a pod; the image is one of them, so that each event is a change."""
    metadata, spec = body["metadata"], body["spec"]
    image = spec["containers"][0]["image"]
    phase = sys.intern(body["status"]["phase"])
    return metadata["uid"], sys.intern(spec["nodeName"]), phase, metadata["resourceVersion"], image


async def run_ours(port: int, pods: int, events: int, kind: str) -> Result:
    """List and watch with our informer, set up as the operator does."""
    from numapin_client.cache.informer import Informer
    from numapin_client.client import Source, connect
    from numapin_client.login.credentials import Login
    from numapin_client.resources import PODS
    from numapin_operator.__main__ import COLLECTOR_THRESHOLDS
    from numapin_operator.observe.pods.parser import parse_pod

    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    decode: Callable[[dict[str, Any]], Any] = slim if kind == "slim" else parse_pod
    before = resident_mib(os.getpid())
    taken, marks = 0, {}
    done = asyncio.Event()

    def decoded(body: dict[str, Any]) -> Any:
        nonlocal taken
        taken += 1
        if taken == pods + 1:
            marks["events"] = time.perf_counter(), time.process_time(), resident_mib(os.getpid())
        if taken == pods + events:
            done.set()
        return decode(body)

    async with connect(Login(f"http://127.0.0.1:{port}", "the benchmark")) as client:
        informer = Informer(client, Source(PODS), decoded)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        task = asyncio.create_task(informer.run(), name="informer")
        await informer.synced.wait()
        listed = time.perf_counter() - begun
        await done.wait()
        ended, ended_cpu = time.perf_counter(), time.process_time()
        task.cancel()
    assert len(informer.items) == pods
    started, started_cpu, rss = marks["events"]
    return Result(
        listed,
        started_cpu - begun_cpu,
        rss,
        rss - before,
        events / (ended - started),
        (ended_cpu - started_cpu) / events * 1e6,
    )


async def run_official(port: int, pods: int, events: int) -> Result:
    """List and watch with the `kubernetes` package, in its usual way."""
    return await asyncio.to_thread(_run_official, port, pods, events)


def _run_official(port: int, pods: int, events: int) -> Result:
    from kubernetes import client, watch

    api = client.CoreV1Api(client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{port}")))

    def key(body: Any) -> tuple[str, str]:
        return body.metadata.namespace, body.metadata.name

    def fields(body: Any) -> tuple[str, ...]:
        image = body.spec.containers[0].image
        version = body.metadata.resource_version
        return body.metadata.uid, body.spec.node_name, body.status.phase, version, image

    before, begun, begun_cpu = resident_mib(os.getpid()), time.perf_counter(), time.process_time()
    items: dict[tuple[str, str], tuple[str, ...]] = {}
    token: str | None = None
    while True:
        page = api.list_pod_for_all_namespaces(limit=CHUNK, _continue=token)
        items.update({key(each): fields(each) for each in page.items})
        assert page.metadata is not None
        token = page.metadata._continue  # noqa: SLF001 (the official client's name)
        if not token:
            break
    listed, rss = time.perf_counter() - begun, resident_mib(os.getpid())
    started, started_cpu = time.perf_counter(), time.process_time()
    listed_cpu = started_cpu - begun_cpu
    stream = watch.Watch().stream(
        api.list_pod_for_all_namespaces, resource_version=page.metadata.resource_version
    )
    for taken, event in enumerate(stream, 1):
        items[key(event["object"])] = fields(event["object"])
        if taken == events:
            break
    ended, ended_cpu = time.perf_counter(), time.process_time()
    assert len(items) == pods
    rate, cpu = events / (ended - started), (ended_cpu - started_cpu) / events * 1e6
    return Result(listed, listed_cpu, rss, rss - before, rate, cpu)


def measured(part: str, port: int, pods: int, events: int) -> Result:
    """Run one part in a separate process."""
    command = [sys.executable, "-m", "numapin_benchmarks.informer"]
    command += ["--part", part, "--port", str(port), "--pods", str(pods), "--events", str(events)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return Result(**json.loads(ran.stdout))


def show(name: str, results: Sequence[Result]) -> None:
    """Print the median, minimum and maximum of each figure."""
    row = f"{name:14}"
    for field, width, digits in (
        ("list_seconds", 19, 1),
        ("list_cpu_seconds", 19, 1),
        ("rss_mib", 17, 0),
        ("grown_mib", 17, 0),
        ("events_per_second", 21, 0),
        ("cpu_us_per_event", 17, 0),
    ):
        values = [float(getattr(result, field)) for result in results]
        middle, low, high = statistics.median(values), min(values), max(values)
        row += f"{f'{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})':>{width}}"
    print(row)


def compare(options: argparse.Namespace) -> None:
    """Start the server, alternate between the parts, print the table."""
    parts = ["slim", "planner"] + (["official"] if options.peer else [])
    command = [sys.executable, "-m", "numapin_benchmarks.informer.pod_server"]
    command += ["--pods", str(options.pods), "--events", str(options.events)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            results: dict[str, list[Result]] = {part: [] for part in parts}
            for _ in range(options.runs):
                for part in parts:
                    results[part].append(measured(part, port, options.pods, options.events))
        finally:
            server.kill()
    size = len(json.dumps(pod(1, 1), separators=(",", ":")))
    print(f"{options.pods} pods of {size} bytes, {options.events} events, {options.runs} runs:")
    print("median (min-max)")
    print(
        f"{'':14}{'list, s':>19}{'its CPU, s':>19}{'RSS, MiB':>17}{'grown by':>17}"
        f"{'events/s':>21}{'CPU us/event':>17}"
    )
    names = {"slim": "ours, slim", "planner": "ours, planner", "official": "official"}
    for part in parts:
        show(names[part], results[part])


def main() -> None:
    """Run all measurements, or one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=20_000, help="pods there are")
    parser.add_argument("--events", type=int, default=20_000, help="changes that are sent")
    parser.add_argument("--runs", type=int, default=3, help="runs of each")
    parser.add_argument("--peer", action="store_true", help="also run the official client")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is None:
        compare(options)
        return
    work: Awaitable[Result]
    if options.part == "official":
        work = run_official(options.port, options.pods, options.events)
    else:
        work = run_ours(options.port, options.pods, options.events, options.part)
    print(json.dumps(asdict(asyncio.run(_awaited(work)))))


async def _awaited(work: Awaitable[Result]) -> Result:
    return await work


if __name__ == "__main__":
    main()
