"""Effect, latency and cost of enforcement, compared with the kubelet's static policy.

    python -m numapin_benchmarks.enforcing [PART...] [-o FILE]

It uses this machine's cgroups and, for all but two parts, a real one-node Kubernetes that is
removed at the end. The parts; all of them run if none is named:

    fence      100 shared containers leave a CPU, without a cluster; budget 10 ms on v1, 2 ms on v2
    moving     run time that a busy loop loses when it is moved, without a cluster; budget 5 ms
    drift      from an overwritten cpuset until it is reverted; budget p99 20 ms
    start      from a container's cgroup until it has its own CPUs, and until its first process
    away       from a kill of the enforcer until the standby fences, and fences a new pod
    sharing    how long an exclusive CPU is shared, a wrong set stays, a CPU has two containers
    kubelet    start and sharing with the kubelet's static policy instead, on the same machine
    isolation  a small service's latency, CPU share and waiting: alone, with neighbours, pinned
    weight     memory and idle CPU time of an enforcer and its standby, 100 and 250 pods;
               budget 50 MiB, 0.2 %
    storm      a new pod is fenced, a container starts and stops, storms of events; 10 to 250 pods,
               40 of them with 500 cgroups each inside a container

It needs root and takes about ten minutes. An observer reads the kernel's effective sets each
millisecond and at every event. Figures of a machine with other work mean little: the load is
printed, and written with the figures.
"""

import argparse
import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numapin_benchmarks.enforcing import away, drift, isolation, start
from numapin_benchmarks.enforcing.labs import Bench, numapin, static_kubelet
from numapin_benchmarks.enforcing.sharing import Effort, compare
from numapin_benchmarks.enforcing.trees import fence, moving, storm, weight
from numapin_benchmarks.figures import HEADER, Figure
from numapin_benchmarks.surroundings import load, machine, progress
from numapin_lab.errors import LabError

PARTS = (
    *("fence", "moving", "drift", "start", "away", "sharing", "kubelet"),
    *("isolation", "weight", "storm"),
)
ON_NUMAPIN = ("drift", "start", "away", "sharing", "isolation")
KUBELET_STARTS = 10
FENCE_ROUNDS = 20
WEIGHED_PODS = (100, 250)
STORM_PODS = (10, 100, 250)
RECONCILING = (10, 1)
"""The kubelet's reconcile period in seconds: the default, and the shortest that it accepts."""


class Results:
    """The measured figures; printed as soon as a part ends."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.document: dict[str, Any] = {"machine": machine(), "parts": {}}
        if options.output and options.output.exists():
            earlier = json.loads(options.output.read_text())
            if earlier["machine"] == self.document["machine"]:
                self.document = earlier

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[Figure], None]]:
        """Measure one part; yields the function that takes its figures."""
        progress(f"{name}, load {load():.1f}")
        began, before, found = time.monotonic(), load(), list[Figure]()
        yield found.append
        self.document["parts"][name] = {
            "date": time.strftime("%Y-%m-%d"),
            "load": [before, load()],
            "seconds": round(time.monotonic() - began, 1),
            "figures": [one.to_json() for one in found],
        }
        print(f"\n{name} (load {before:.1f} to {load():.1f})\n{HEADER}")
        for one in found:
            print(one.row(), flush=True)

    def run(self) -> None:
        """Run every requested part."""
        asked, options = self._options.parts, self._options
        self._measure(
            {
                "fence": lambda: fence.measure(FENCE_ROUNDS),
                "moving": lambda: moving.measure(options.moves),
            }
        )
        if not asked.isdisjoint(ON_NUMAPIN):
            with numapin() as bench:
                self._on_numapin(bench)
        if "kubelet" in asked:
            self._on_kubelets()
        weighed = (WEIGHED_PODS, options.assignments, options.idle_seconds)
        self._measure(
            {
                "weight": lambda: weight.measure(*weighed),
                "storm": lambda: storm.measure(STORM_PODS),
            }
        )

    def _measure(self, measured: Mapping[str, Callable[[], Iterator[Figure]]]) -> None:
        """Measure those of these parts that are requested."""
        for name in (one for one in measured if one in self._options.parts):
            with self.part(name) as take:
                for figure in measured[name]():
                    take(figure)

    def _on_numapin(self, bench: Bench) -> None:
        options = self._options
        times = options.repetitions
        self._measure(
            {
                "drift": lambda: drift.measure(bench, options.drifts),
                "start": lambda: start.measure(bench, options.starts),
                "away": lambda: away.measure(bench, options.deaths),
                "sharing": lambda: compare(bench, Effort(2 * times, times, times)),
            }
        )
        if "isolation" in options.parts:
            with self.part("isolation") as take:
                figures, samples = isolation.measure(bench, options.repetitions)
                self.document["isolation"] = samples
                for figure in figures:
                    take(figure)

    def _on_kubelets(self) -> None:
        """Measure with the default period, and then the shortest one where the period matters."""
        times = self._options.repetitions
        for seconds in RECONCILING:
            deletions = times if seconds == RECONCILING[0] else 0
            effort = Effort(times, 1, deletions, seconds)
            name = f"kubelet static, every {seconds} s"
            with static_kubelet(seconds) as bench, self.part(name) as take:
                for figure in compare(bench, effort):
                    take(figure)
                if deletions:
                    for figure in start.measure(bench, KUBELET_STARTS):
                        take(figure)


def to_text(document: dict[str, Any]) -> str:
    """JSON with each list of values on one line."""
    numbers = re.compile(r"\[\s+([^\[\]{}]*?)\s+\]")
    spread = json.dumps(document, indent=1)
    return numbers.sub(lambda found: f"[{' '.join(found[1].split())}]", spread) + "\n"


def build_parser() -> argparse.ArgumentParser:
    """Parts and numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    merged = "write the figures to FILE as JSON; earlier figures of other parts stay in it"
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=merged)
    numbers = {
        "--repetitions": (5, "repetitions of slow parts: sharing, kubelet, isolation"),
        "--moves": (100, "moves of a busy loop"),
        "--drifts": (200, "cpusets overwritten, for an exclusive container and a neighbour each"),
        "--starts": (50, "pods started by numapin"),
        "--deaths": (20, "kills of the enforcer, with a new pod each time"),
        "--assignments": (1000, "assignments before the enforcer's memory is measured"),
        "--idle-seconds": (120, "seconds for which the enforcer is idle, twice"),
    }
    for name, (default, meaning) in numbers.items():
        parser.add_argument(name, type=int, default=default, help=f"{meaning} ({default})")
    return parser


def main() -> int:
    """Measure the requested parts."""
    parser = build_parser()
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.parts = set(options.parts or PARTS)
    # A cancelled job ends as with Ctrl-C, so that every lab is taken down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results = Results(options)
    try:
        results.run()
    except (LabError, OSError) as error:
        progress(f"not everything was measured: {error}")
        return 1
    finally:
        if options.output:
            options.output.write_text(to_text(results.document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
