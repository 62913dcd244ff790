"""Time to place one pod: our planner and the kubelet's own managers, in one run.

    python -m numapin_benchmarks.placement [--rounds N] [--steps N] [--kubelet PROGRAM] [-o FILE]

Both planners get the same sequences of pods (workload.py) in turns, on machines of 8 to 448 CPUs
and under four policies. The kubelet's side is a Go program (kubelet/) that calls the exported
constructors of Kubernetes' CPU, Memory and Topology Manager. It is built on first use, which takes
minutes, and cached in NUMAPIN_BENCH_CACHE (default: ~/.cache/numapin/benchmarks). The measured time
is that of admitting one parsed pod: `Admit` there, `Node.place` here. The kubelet's state files are
in memory and its logs are discarded. The answers are compared too.
"""

import argparse
import contextlib
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_benchmarks.placement.growth import growth_tables
from numapin_benchmarks.placement.peer import Kubelet, build
from numapin_benchmarks.placement.workload import POLICIES, SHAPES, Json, Shape, scenario
from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.placement import KUBELET, Node, PlacementError, resolve


@dataclass
class Pair:
    """Microseconds for each pod of both planners, and whether their answers were equal."""

    theirs: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    alike: bool = True

    @property
    def ratio(self) -> float:
        """Their median divided by ours."""
        return statistics.median(self.theirs) / statistics.median(self.ours)


def place_all(question: Json) -> list[float]:
    """Microseconds of our planner for each pod of a scenario."""
    played = parse_scenario(json.dumps(question), Machines(Path()))
    node = Node(resolve(played.topology, played.policy, KUBELET))
    took = []
    for step in played.steps:
        if step.add is None:
            node.release(step.remove)
            continue
        begun = time.perf_counter_ns()
        with contextlib.suppress(PlacementError):
            node.place(step.add)
        took.append((time.perf_counter_ns() - begun) / 1000)
    return took


def compare(kubelet: Kubelet, shape: Shape, policy: Json, options: argparse.Namespace) -> Pair:
    """Run both planners on the same scenario in turns."""
    question = scenario("benchmark", shape, policy, options.steps)
    machine = shape.document()
    ours = question | {"machine": machine}
    pair = Pair()
    for _ in range(options.rounds):
        given = kubelet.ask(ours)
        if given is None or given.get("error"):
            raise SystemExit(f"the kubelet's managers failed on {shape.name}: {given}")
        pair.theirs += [
            step["nanoseconds"] / 1000 for step in given["steps"] if "nanoseconds" in step
        ]
        pair.ours += place_all(ours)
        pair.alike = pair.alike and _facts(given) == _facts(
            answer(parse_scenario(json.dumps(ours), Machines(Path())), KUBELET)
        )
    return pair


def _facts(given: Json) -> list[tuple[Any, ...]]:
    return [
        (
            step.get("admitted"),
            {name: each["cpus"] for name, each in (step.get("containers") or {}).items()},
            step["shared"],
        )
        for step in given["steps"]
    ]


def rows(kubelet: Kubelet, options: argparse.Namespace) -> Iterator[Json]:
    """One row for each machine and policy."""
    for shape in SHAPES:
        for name, policy in POLICIES.items():
            pair = compare(kubelet, shape, policy, options)
            yield {
                "machine": shape.name,
                "cpus": shape.cpus,
                "policy": name,
                "kubelet": summary(pair.theirs),
                "numapin": summary(pair.ours),
                "ratio": round(pair.ratio, 1),
                "alike": pair.alike,
            }


def summary(took: Sequence[float]) -> Json:
    """Median, 95th percentile and largest of some microseconds."""
    ordered = sorted(took)
    return {
        "pods": len(ordered),
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(len(ordered) * 0.95)], 1),
        "max": round(ordered[-1], 1),
    }


def show(row: Json) -> str:
    """A row as text."""
    theirs, ours = (f"{row[who]['median']:8.0f} {row[who]['p95']:8.0f}" for who in WHO)
    alike = "" if row["alike"] else "  ANSWERS DIFFER"
    return f"{row['machine']:<24}{row['policy']:<38}{theirs}{ours}{row['ratio']:8.0f}x{alike}"


WHO = ("kubelet", "numapin")


def measure(options: argparse.Namespace, progress: Callable[[str], object]) -> Json:
    """Run all measurements; each line goes to `progress` at once."""
    program = options.kubelet or build()
    progress(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    progress("microseconds to place one pod: median and 95th percentile")
    progress(f"{'machine':<24}{'policy':<38}{'kubelet':>17}{'numapin':>17}{'ratio':>9}")
    found = []
    with Kubelet(program) as kubelet:
        for row in rows(kubelet, options):
            found.append(row)
            progress(show(row))
    large = [row["ratio"] for row in found if row["cpus"] >= 64]
    progress(f"machines of 64 CPUs or more: at least {min(large):.0f} times shorter")
    tables = growth_tables()
    for title, lines in tables.items():
        progress(f"\n{title}")
        for line in lines:
            progress("  " + "  ".join(f"{key} {value}" for key, value in line.items()))
    return {"comparison": found, "growth": tables}


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each sequence")
    parser.add_argument("--steps", type=int, default=120, help="pods in each sequence")
    parser.add_argument("--kubelet", type=Path, help="the Go program, if it is already built")
    parser.add_argument("-o", "--output", type=Path, help="write the figures there as JSON")
    options = parser.parse_args()
    found = measure(options, lambda line: print(line, flush=True))
    if options.output:
        options.output.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if all(row["alike"] for row in found["comparison"]) else 1


if __name__ == "__main__":
    sys.exit(main())
