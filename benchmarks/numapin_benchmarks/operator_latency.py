"""Time from a pod's binding to the written assignment, and the operator's memory and CPU time.

etcd and kube-apiserver are real, and the operator is a separate process with its own rights. The
benchmark acts as the scheduler (binds each pod) and as the enforcer (reports a large machine once).
The time starts just before the binding is sent and ends when the changed NodeAssignment arrives on
a watch. It includes two requests of the API server that are not the operator's; the time until the
binding is answered is printed beside it.
"""

import argparse
import asyncio
import random
import secrets
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from numapin_api import names
from numapin_api.forms.spec import read_spec
from numapin_api.hardware.compact import compact_topology
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_client.cache.informer import Informer
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import (
    CPU_POLICIES,
    NODE_ASSIGNMENTS,
    NODES,
    PODS,
    Json,
    Key,
)
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.processes.ports import choose
from numapin_lab.processes.usage import cpu_seconds, resident_mib

NODE = "bench"
WAIT_SECONDS = 60
PAUSE_SECONDS = 0.05


def large_machine() -> Topology:
    """Two sockets of 64 cores with two threads each: 256 CPUs, 8 NUMA nodes."""
    cpus = tuple(
        Cpu(cpu, cpu % 128, cpu % 128 // 64, cpu % 128 // 8, cpu % 128 // 16) for cpu in range(256)
    )
    return Topology(cpus, tuple(NumaNode(number, 32 << 30) for number in range(8)))


class Watcher:
    """Records when each pod's containers first appear in the assignment."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.changed = asyncio.Event()
        self.spec: Json = {}

    def note(self, changes: Sequence[Change[Json]]) -> None:
        """Record the changes of the watch."""
        now = time.perf_counter()
        for change in changes:
            self.spec = change.new or {}
            for container in self.spec.get("containers") or ():
                self.seen.setdefault(container["pod"], now)
        self.changed.set()

    async def until(self, pod: str) -> float:
        """When the pod first appeared in the assignment."""
        async with asyncio.timeout(WAIT_SECONDS):
            while pod not in self.seen:
                self.changed.clear()
                await self.changed.wait()
        return self.seen[pod]


def _spec(body: Json) -> Json:
    """The spec of a NodeAssignment as v1alpha1 has it."""
    return read_spec(body).wire


def pod_body(name: str) -> Json:
    """A Guaranteed pod of one CPU that no scheduler binds."""
    amount = {"cpu": "1", "memory": "64Mi"}
    resources = {"requests": amount, "limits": amount}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "by-hand",
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        },
    }


async def bind(api: ApiClient, name: str, node: str = NODE) -> None:
    """Bind a pod to a node, as a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    metadata = {"name": name, "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    await api.create(PODS, body, "binding")


@asynccontextmanager
async def operating(plane: ControlPlane, folder: Path) -> AsyncIterator[int]:
    """Run the operator; yields its process id."""
    account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
    kubeconfig = log_in(plane, account, folder / "operator")
    options = (f"--kubeconfig={kubeconfig}", "--no-leader-elect", "--health-address=127.0.0.1:0")
    with (folder / "operator.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "numapin_operator", *options, stdout=log, stderr=log
        )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def prepare(api: ApiClient, watcher: Watcher) -> None:
    """Create a node with policy and hardware; returns when the operator has planned it."""
    await api.create(NODES, {"metadata": {"name": NODE}})
    await api.create(
        CPU_POLICIES, {"metadata": {"name": "bench"}, "spec": {"reserved": {"count": 2}}}
    )
    async with asyncio.timeout(WAIT_SECONDS):
        while not watcher.spec:
            watcher.changed.clear()
            await watcher.changed.wait()
        status = {"topology": compact_topology(large_machine()), "observedGeneration": 1}
        await api.merge_patch(NODE_ASSIGNMENTS, Key(NODE), {"status": status}, subresource="status")
        while "pools" not in watcher.spec:
            watcher.changed.clear()
            await watcher.changed.wait()


async def measure(api: ApiClient, watcher: Watcher, pods: int) -> dict[str, list[float]]:
    """Milliseconds for each pod from the binding to its answer, and to the assignment."""
    found: dict[str, list[float]] = {"binding answered": [], "assignment seen": []}
    for _ in range(pods):
        name = f"pod-{secrets.token_hex(4)}"
        await api.create(PODS, pod_body(name))
        await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))
        sent = time.perf_counter()
        await bind(api, name)
        answered = time.perf_counter()
        seen = await watcher.until(name)
        found["binding answered"].append((answered - sent) * 1000)
        found["assignment seen"].append((seen - sent) * 1000)
    return found


def describe(what: str, values: list[float]) -> str:
    """One line of quantiles."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return (
        f"{what:>18}: p50 {cuts[49]:6.1f}  p90 {cuts[89]:6.1f}  p99 {cuts[98]:6.1f}  "
        f"min {min(values):6.1f}  max {max(values):6.1f} ms  (n={len(values)})"
    )


async def benchmark(plane: ControlPlane, folder: Path, pods: int) -> None:
    """Run all measurements and print the results."""
    watcher = Watcher()
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
        informer = Informer(api, Source(NODE_ASSIGNMENTS), _spec, watcher.note)
        watching = asyncio.create_task(informer.run())
        async with operating(plane, folder) as pid:
            await prepare(api, watcher)
            await measure(api, watcher, 5)
            before, started = cpu_seconds(pid), time.perf_counter()
            for what, values in (await measure(api, watcher, pods)).items():
                print(describe(what, values))
            used = (cpu_seconds(pid) - before) / pods * 1000
            print(f"operator: {resident_mib(pid):.1f} MiB resident, {used:.1f} ms of CPU for a pod")
            idle_from, idle_seconds = cpu_seconds(pid), 10
            await asyncio.sleep(idle_seconds)
            idle = (cpu_seconds(pid) - idle_from) / idle_seconds * 100
            print(f"operator: {idle:.2f} % of a CPU idle; {time.perf_counter() - started:.0f} s")
        watching.cancel()


@contextmanager
def installed() -> Iterator[tuple[ControlPlane, Path]]:
    """A control plane with the default overlay, and a folder; both are gone at the end."""
    programs = {name: found.path for name, found in provide(CONTROL_PLANE).items()}
    with tempfile.TemporaryDirectory(prefix="numapin-bench-") as name:
        folder = Path(name)
        plane = ControlPlane(folder / "plane", ControlPlanePorts(*choose(3)), programs)
        try:
            plane.start()
            plane.kubectl("apply", "--server-side", "-k", str(OVERLAY))
            yield plane, folder
        finally:
            plane.stop()


def main() -> int:
    """Start a control plane, measure, stop it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=100, help="number of pods (default: 100)")
    pods = parser.parse_args().pods
    with installed() as (plane, folder):
        asyncio.run(benchmark(plane, folder, pods))
    return 0


if __name__ == "__main__":
    sys.exit(main())
