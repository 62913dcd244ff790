"""Pods that are refused after binding: the scheduler plug-in with numapin's objects and without.

    python -m numapin_benchmarks.scheduling [--nodes 20] [--pods 200] [--seed 1] [--resync 5]

Real etcd, kube-apiserver, operator and scheduler; nodes of two NUMA nodes with eight CPUs each are
played. Random pods come five a second, live for 5 to 20 s, and ask for one to seven CPUs of one
NUMA node. The same pods are placed by the scheduler with the plug-in NodeResourceTopologyMatch and
with numapin's objects, by the same scheduler without the objects, and by the default scheduler.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from numapin_benchmarks.scheduling.played_cluster import (
    operator,
    prepare,
    wait_until_planned,
)
from numapin_benchmarks.scheduling.pods import Fates, Pod, play, random_pods
from numapin_benchmarks.surroundings import load, machine, progress
from numapin_lab.components.build import provide
from numapin_lab.controlplane.controllers import scheduler
from numapin_lab.controlplane.topology_scheduler import TopologyScheduler
from numapin_lab.played.control_plane import LargePlane, large_plane
from numapin_lab.played.enforcers import played
from numapin_lab.played.machines import TWO_NUMA_NODES
from numapin_lab.processes.daemons import stop
from numapin_lab.processes.ports import choose

WITH_OBJECTS: Final = "plug-in, objects"
PLUG_IN: Final = "plug-in, no objects"
DEFAULT: Final = "default"
SCHEDULERS: Final = (WITH_OBJECTS, PLUG_IN, DEFAULT)
HEAD: Final = (
    "| scheduler | pods | bound | refused after binding | waited for a node, p50 / p99, s "
    "| most that waited | seconds |\n|---|---|---|---|---|---|---|"
)


def run(folder: Path, chosen: str, nodes: int, wanted: list[Pod], resync_seconds: int) -> Fates:
    """Have the pods placed on so many nodes; `folder` gets the logs."""
    publishes = chosen == WITH_OBJECTS
    with ExitStack() as stack:
        plane = large_plane(folder)
        stack.callback(plane.stop)
        plane.start()
        prepare(plane, nodes, publishes=publishes)
        options = (f"--nodes={nodes}", "--end-containers")
        stack.enter_context(played(plane.kubeconfig, folder / "notes", [TWO_NUMA_NODES], *options))
        log = folder / "operator.log"
        stack.enter_context(operator(plane, log))
        wait_until_planned(plane, nodes, log, publishes=publishes)
        if chosen == DEFAULT:
            _start_default(plane, stack)
        else:
            topology = TopologyScheduler(plane, resync_seconds=resync_seconds)
            stack.callback(topology.stop)
            topology.start()
        return play(plane, wanted)


def _start_default(plane: LargePlane, stack: ExitStack) -> None:
    program = {name: found.path for name, found in provide(["kube-scheduler"]).items()}
    controller = scheduler(replace(plane, programs={**plane.programs, **program}), *choose(1))
    controller.start()
    if (pid := controller.daemon.pid()) is not None:
        stack.callback(stop, pid, 5.0)


def row(chosen: str, count: int, fates: Fates, seconds: float) -> str:
    """A line of the table."""
    waited = fates.waited() or [0.0]
    middle, last = (waited[int(share * (len(waited) - 1))] for share in (0.5, 0.99))
    told = (chosen, count, len(fates.bound), len(fates.refused), f"{middle:.1f} / {last:.1f}")
    return f"| {' | '.join(map(str, told))} | {fates.most_pending} | {seconds:.0f} |"


def main() -> None:
    """Run all three, and print what became of the pods."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for option, default in (("--nodes", 20), ("--pods", 200), ("--seed", 1), ("--resync", 5)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--only", nargs="*", choices=SCHEDULERS, default=SCHEDULERS)
    parser.add_argument("--keep", type=Path, help="a folder for the logs, which stay")
    options = parser.parse_args()
    wanted = random_pods(options.pods, options.seed)
    print(machine() | {"load": load()}, HEAD, sep="\n\n", flush=True)
    for at, chosen in enumerate(options.only):
        progress(f"{chosen}: {len(wanted)} pods on {options.nodes} nodes")
        with tempfile.TemporaryDirectory(prefix="numapin-nrt-") as temporary:
            folder = options.keep / str(at) if options.keep else Path(temporary)
            begun = time.monotonic()
            fates = run(folder, chosen, options.nodes, wanted, options.resync)
        print(row(chosen, len(wanted), fates, time.monotonic() - begun), flush=True)


if __name__ == "__main__":
    main()
