"""How fast pods get the annotation numapin.io/cpus, and what a restarted operator patches again.

etcd and kube-apiserver are real, and the operator is a separate process with its own rights. The
benchmark acts as the enforcers: it reports a large machine for each node once. All pods have their
CPUs before the operator annotates; then it is started with `--annotate-pods`, and once more.
"""

import argparse
import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from numapin_api import names
from numapin_api.forms.spec import read_spec
from numapin_api.hardware.compact import compact_topology
from numapin_benchmarks.operator_latency import bind, installed, large_machine, pod_body
from numapin_client.cache.informer import Informer
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import CPU_POLICIES, NODE_ASSIGNMENTS, NODES, PODS, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.processes.usage import cpu_seconds

COMPONENT = OVERLAY.parents[1] / "components" / "cpu-annotation"
ON_A_NODE = 250
WAIT_SECONDS = 600
AT_ONCE = 8
PATCHES = re.compile(
    r'^apiserver_request_total\{(?=[^}]*resource="pods")(?=[^}]*subresource="")'
    r'(?=[^}]*verb="PATCH")[^}]*\} (\d+)$',
    re.MULTILINE,
)


class Seen:
    """What the watches show: nodes that have pools, pods that have CPUs, and annotated pods."""

    def __init__(self) -> None:
        self.planned: set[str] = set()
        self.assigned: dict[str, int] = {}
        self.annotated: set[str] = set()
        self.changed = asyncio.Event()

    def note_assignments(self, changes: Sequence[Change[Json]]) -> None:
        """Record the specs of the watch."""
        for change in changes:
            if change.new is not None:
                name, spec = change.new["metadata"]["name"], read_spec(change.new).wire
                self.assigned[name] = len(spec.get("containers") or ())
                if "pools" in spec:
                    self.planned.add(name)
        self.changed.set()

    def note_pods(self, changes: Sequence[Change[Json]]) -> None:
        """Record the annotations of the watch."""
        for change in changes:
            metadata = (change.new or {}).get("metadata", {})
            if names.CPUS_ANNOTATION in (metadata.get("annotations") or {}):
                self.annotated.add(metadata["name"])
        self.changed.set()

    async def until(self, ready: Callable[[], bool]) -> float:
        """Wait until it is so; returns the seconds."""
        began = time.perf_counter()
        async with asyncio.timeout(WAIT_SECONDS):
            while not ready():
                self.changed.clear()
                await self.changed.wait()
        return time.perf_counter() - began


@asynccontextmanager
async def operating(kubeconfig: Path, log: Path, *options: str) -> AsyncIterator[int]:
    """Run the operator; yields its process id."""
    fixed = (f"--kubeconfig={kubeconfig}", "--no-leader-elect", "--health-address=127.0.0.1:0")
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "numapin_operator", *fixed, *options, stdout=out, stderr=out
        )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def fill(api: ApiClient, seen: Seen, pods: int) -> None:
    """Create nodes and pods; returns when every pod has its CPU."""
    nodes = [f"node-{number}" for number in range(-(-pods // ON_A_NODE))]
    for node in nodes:
        await api.create(NODES, {"metadata": {"name": node}})
    rules = {"reserved": {"count": 2}}
    await api.create(CPU_POLICIES, {"metadata": {"name": "bench"}, "spec": rules})
    await seen.until(lambda: len(seen.assigned) == len(nodes))
    status = {"topology": compact_topology(large_machine()), "observedGeneration": 1}
    for node in nodes:
        await api.merge_patch(NODE_ASSIGNMENTS, Key(node), {"status": status}, subresource="status")
    await seen.until(lambda: len(seen.planned) == len(nodes))
    left = iter(range(pods))

    async def create() -> None:
        for number in left:
            await api.create(PODS, pod_body(f"pod-{number}"))
            await bind(api, f"pod-{number}", nodes[number // ON_A_NODE])

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(create())
    await seen.until(lambda: sum(seen.assigned.values()) == pods)


def patches(plane: ControlPlane) -> int:
    """How many patches of pods the API server has answered."""
    return sum(map(int, PATCHES.findall(plane.kubectl("get", "--raw", "/metrics"))))


async def benchmark(plane: ControlPlane, folder: Path, pods: int, rest_seconds: int) -> None:
    """Run all measurements and print the results."""
    seen = Seen()
    account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
    kubeconfig, log = log_in(plane, account, folder / "operator"), folder / "operator.log"
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
        informers = (
            Informer(api, Source(NODE_ASSIGNMENTS), lambda body: body, seen.note_assignments),
            Informer(api, Source(PODS), lambda body: body, seen.note_pods),
        )
        watching = [asyncio.create_task(one.run()) for one in informers]
        async with operating(kubeconfig, log):
            await fill(api, seen, pods)
        print(f"{pods} pods have their CPUs, {len(seen.annotated)} are annotated")
        async with operating(kubeconfig, log, "--annotate-pods") as pid:
            first = await seen.until(lambda: bool(seen.annotated))
            took = await seen.until(lambda: len(seen.annotated) == pods)
            used = cpu_seconds(pid) / pods * 1000
        print(f"first annotation {first:.1f} s after the start, the others in {took:.1f} s:")
        print(f"{pods / took:.0f} pods a second, {used:.1f} ms of CPU of the operator for each")
        print(f"patches: {(before := patches(plane))}")
        async with operating(kubeconfig, log, "--annotate-pods") as pid:
            await asyncio.sleep(rest_seconds)
            used = cpu_seconds(pid)
        again = patches(plane) - before
        print(f"restarted for {rest_seconds} s: {again} patches, {used:.1f} s of CPU")
        for one in watching:
            one.cancel()


def main() -> int:
    """Start a control plane, measure, stop it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=2000, help="number of pods (default: 2000)")
    parser.add_argument("--rest-seconds", type=int, default=30, help="after the restart")
    given = parser.parse_args()
    with installed() as (plane, folder):
        files = (f"--filename={COMPONENT / one}" for one in ("rbac.yaml", "admission.yaml"))
        plane.kubectl("apply", *files)
        asyncio.run(benchmark(plane, folder, given.pods, given.rest_seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
