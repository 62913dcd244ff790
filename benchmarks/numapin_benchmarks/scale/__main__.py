"""How the operator holds in a large cluster, at several sizes.

    python -m numapin_benchmarks.scale [--nodes 500,1000,2000,5000] [--output FILE]

etcd and kube-apiserver are real, and the operator is its real process with its own rights and its
Lease. Nodes are objects; one process plays their enforcers. Pods are objects bound to the nodes
(no kubelet): 30 on each node, half of which want exclusive CPUs. For each size it measures:

    start           until the operator is ready
    all assigned    until all pods of all nodes have their CPUs
    idle            CPU time while nothing happens
    heartbeats      what the enforcers' Leases cost, and what came before them
    scrape          CPU time while pages of metrics are asked for
    cost            CPU time of the API server for a placed pod / for creating that pod, and
                    bytes in etcd
    churn           new pods at some rates: from bound to written in the NodeAssignment; create_ms
                    is how long the API server took to create one of them (median)
    silence         enforcers die: until they show as Unknown; an outage of the API server
    edit            a policy changes, in a way that concerns every node, and none
    restart         of the operator: until it leads again, and how much it writes (nothing)
    relist          another API server takes over and answers every watch with 410

silence_seconds is the longest time for which the operator's event loop stood still, be it because
another program had the CPU; step_cpu_seconds is the CPU time of the longest step of a loop and step
names it; collection_seconds is that of the longest search for reference cycles. plane_cpu_seconds
is the CPU time of etcd and the API server meanwhile (without one that was replaced). The played
enforcers log in as those of their nodes, so roles, admission policies and priority levels apply.
The operator
shares the machine with the API server, etcd and the stand-ins, so times depend on all of them; CPU
time and memory are the operator's own. The machine's load is printed and written.
The default size takes some minutes, `make scale` (500 to 5,000 nodes) most of an hour; 5,000 nodes
need some 10 GiB of memory. etcd does not wait for the disk.
"""

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numapin_api import names
from numapin_benchmarks.scale.notes import Notes
from numapin_benchmarks.scale.population import Size, fill, machines
from numapin_benchmarks.scale.steps.changes import edit, relist, restart
from numapin_benchmarks.scale.steps.churn import churn
from numapin_benchmarks.scale.steps.cost import cost
from numapin_benchmarks.scale.steps.heartbeats import heartbeats
from numapin_benchmarks.scale.steps.scene import Scene
from numapin_benchmarks.scale.steps.scrapes import scrape
from numapin_benchmarks.scale.steps.silence import silence
from numapin_benchmarks.scale.steps.start import idle, roll_out
from numapin_benchmarks.scale.table import rows
from numapin_benchmarks.surroundings import load, machine, progress
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import CPU_POLICIES
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.errors import LabError
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.played.control_plane import LargePlane, large_plane
from numapin_lab.played.enforcers import played
from numapin_lab.played.node_logins import request_tokens, write_tokens
from numapin_lab.played.operator_process import OperatorRun
from numapin_lab.processes.daemons import kill

STEPS = ("idle", "scrape", "churn", "edit", "restart", "relist")
MORE_STEPS = ("heartbeats", "cost", "silence")


@contextmanager
def filled_plane(folder: Path, size: Size) -> Iterator[LargePlane]:
    """A control plane that serves numapin's CRDs and a whole cluster."""
    plane = large_plane(folder / "plane")
    try:
        plane.start()
        plane.kubectl("apply", "--server-side", "-k", str(OVERLAY))
        pid = plane.apiserver.pid()
        assert pid is not None
        kill(pid)
        begun = time.monotonic()
        written = fill(plane.ports.etcd, size, machines(size))
        progress(f"{written} objects in etcd after {time.monotonic() - begun:.0f} s")
        begun = time.monotonic()
        plane.start()
        progress(f"the API server is ready after {time.monotonic() - begun:.0f} s")
        yield plane
    finally:
        plane.stop()


async def measure(plane: LargePlane, folder: Path, size: Size, options: Any) -> dict[str, Any]:
    """All requested measurements of one size."""
    account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
    login = log_in(plane, account, folder / "operator")
    log = folder / "operator.log"
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as api:
        policy = {"metadata": {"name": "scale"}, "spec": {"reserved": {"count": 2}}}
        await api.create(CPU_POLICIES, policy)
        notes, tokens = folder / "notes", folder / "tokens.json"
        await asyncio.to_thread(write_tokens, tokens, await request_tokens(api, size.names))
        played_options = [f"--nodes={size.nodes}", f"--pods={size.pods}", f"--tokens={tokens}"]
        played_options += ["--heartbeats"] if options.heartbeats else []
        played_options += ["--older"] if options.older else []
        with played(plane.kubeconfig, notes, machines(size), *played_options):
            operator = OperatorRun(login, log, options.profile, traces=options.traces)
            scene = Scene(size, plane, api, Notes(notes), folder, login, operator, tokens)
            try:
                await run_steps(scene, options)
            finally:
                status = await asyncio.to_thread(scene.operator.stop)
                scene.figures["end"] = {"exit_status": status}
                if options.keep_log:
                    options.keep_log.write_bytes(log.read_bytes())
    return scene.figures


async def run_steps(scene: Scene, options: Any) -> None:
    """The steps in their order."""

    async def churns() -> None:
        for rate in options.rates:
            await churn(scene, rate, rate * options.seconds)

    async def edits() -> None:
        everywhere = {"cpuQuota": "Keep"}
        await edit(scene, "edit that concerns every node", everywhere, scene.size.nodes)
        await edit(scene, "edit that concerns no node", {"priority": 1}, 0)

    steps: dict[str, Callable[[], Awaitable[None]]] = {
        "idle": lambda: idle(scene),
        "scrape": lambda: scrape(scene),
        "cost": lambda: cost(scene, options.cost_rate, options.cost_pods),
        "churn": churns,
        "edit": edits,
        "restart": lambda: restart(scene),
        "relist": lambda: relist(scene),
        "silence": lambda: silence(scene, options.outage),
        # Last: it writes as an older enforcer does, which then gets assignments in the older form.
        "heartbeats": lambda: heartbeats(scene),
    }
    await roll_out(scene)
    for name, step in steps.items():
        if name in options.steps:
            await step()


def one_size(size: Size, options: Any) -> dict[str, Any]:
    """The figures of one size, in a control plane of its own."""
    progress(f"{size.nodes} nodes, {size.nodes * size.pods} pods")
    before = load()
    with (
        tempfile.TemporaryDirectory(prefix="numapin-scale-", dir=options.folder) as name,
        filled_plane(Path(name), size) as plane,
    ):
        figures = asyncio.run(measure(plane, Path(name), size, options))
    return {
        "nodes": size.nodes,
        "pods": size.pods,
        "exclusive": size.exclusive,
        "date": time.strftime("%Y-%m-%d"),
        "load": [before, load()],
        "figures": figures,
    }


def numbers(text: str) -> list[int]:
    """Numbers with commas."""
    return [int(one) for one in text.split(",")]


def build_parser() -> argparse.ArgumentParser:
    """Sizes, steps and files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=numbers, default="200", help="sizes, with commas (200)")
    parser.add_argument("--pods", type=int, default=30, help="pods on each node (30)")
    parser.add_argument("--exclusive", type=int, default=15, help="of these, exclusive (15)")
    parser.add_argument("--seconds", type=int, default=20, help="seconds of new pods (20)")
    parser.add_argument("--seed", type=int, default=1, help="which nodes get the new pods (1)")
    parser.add_argument("--heartbeats", action="store_true", help="write as kubelets do when idle")
    parser.add_argument("--rates", type=numbers, default="20,200", help="pods a second (20,200)")
    parser.add_argument("--cost-pods", type=int, default=300, help="pods of the step cost (300)")
    parser.add_argument("--cost-rate", type=float, default=5.0, help="... a second (5)")
    parser.add_argument("--outage", type=float, default=0.0, help="seconds, for silence (0)")
    usual, more = ",".join(STEPS), ",".join(MORE_STEPS)
    parser.add_argument("--older", action="store_true", help="enforcers report as those of 0.1")
    parser.add_argument("--steps", default=usual, help=f"of {usual},{more} (not the last three)")
    parser.add_argument("--traces", action="store_true", help="time the operator's own steps too")
    parser.add_argument("-o", "--output", type=Path, help="write the figures there as JSON")
    parser.add_argument("--folder", type=Path, help="where etcd's data is; a tmpfs is quick")
    parser.add_argument("--keep-log", type=Path, help="copy the operator's log to this file")
    parser.add_argument("--profile", type=Path, help="run the operator under cProfile, into FILE")
    return parser


def main() -> int:
    """Measure all sizes; what was measured is printed and written whatever happens."""
    parser = build_parser()
    options = parser.parse_args()
    if options.exclusive > options.pods:
        parser.error(f"--exclusive {options.exclusive} is more than --pods {options.pods}")
    options.steps = frozenset(options.steps.split(","))
    # A cancelled job ends as with Ctrl-C, so that every process is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    random.seed(options.seed)
    document: dict[str, Any] = {"machine": machine(), "seed": options.seed, "sizes": []}
    try:
        for nodes in options.nodes:
            size = Size(nodes, options.pods, options.exclusive)
            document["sizes"].append(one_size(size, options))
            if options.output:
                options.output.write_text(json.dumps(document, indent=1) + "\n")
    except (LabError, OSError, ChildProcessError) as error:
        progress(f"not everything was measured: {error}")
        return 1
    finally:
        print(f"machine: {document['machine']}")
        loads = [one["load"] for one in document["sizes"]]
        print(f"load of the last minute, before and after each size: {loads}")
        print("\n".join(rows(document["sizes"])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
