"""What moves gain: how many aligned requests fit with them, without them, and with the kubelet.

    python -m numapin_benchmarks.moves [--rounds N] [--machine NAME] [-o FILE]

Each captured machine (tests/machines) is filled with random pods to 70, 80 and 90 % of its CPUs.
Pods are removed and added at random, as often as there are pods three times over, so that free CPUs
lie where a running cluster has them. Then one random pod comes that needs one NUMA node
(`topology.policy: SingleNUMANode`) and fewer CPUs than are free. The kubelet's static policy, with
its faults, numapin's mode Static, and numapin with moves get the same machine and the same pod. The
kubelet's answers are those of our planner with its quirks, which the conformance tests hold equal.
It also measures the time of each search.

    python -m numapin_benchmarks.moves --check N [--seed TEXT]

compares N searches on small random machines with all moves there are.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from numapin_api.topology import Topology
from numapin_benchmarks.moves.fragmented import Fragmented, check_search, fragmented, pod, policy
from numapin_lab.played.machines import captured_names, captured_topology
from numapin_operator.placement import (
    KUBELET,
    Node,
    NodePolicy,
    PlacementError,
    PodView,
    fewest_moves,
    resolve,
)

LOADS = (70, 80, 90)
SIZES = (1, 1, 2, 2, 4, 4, 8, 16)
TURNOVER = 3
"""How often the pods of a machine are replaced before the request comes."""

ALIGNED = {"reserved": {"count": 1}, "topology": {"policy": "SingleNUMANode"}}


@dataclass(frozen=True)
class Row:
    """One machine at one load.

    Attributes:
        requests: the pods that came.
        kubelet, static, dynamic: how many of them fitted.
        moved: the mean number of moved CPUs, of the pods for which something moved.
        cut: searches that reached their limits.
        p50_ms, max_ms: the time of a search.
    """

    machine: str
    cpus: int
    numa_nodes: int
    load: int
    requests: int
    kubelet: int
    static: int
    dynamic: int
    moved: float
    cut: int
    p50_ms: float
    max_ms: float


def machines(only: str | None) -> Iterator[tuple[str, Topology]]:
    """The captured machines by name."""
    for name in captured_names():
        if only in (None, name):
            yield name, captured_topology(name)


def measure(name: str, topology: Topology, load: int, rounds: int) -> Row:
    """Ask all three about many random requests."""
    rng = random.Random(f"{name} {load}")
    ours = resolve(topology, policy(**ALIGNED))
    theirs = resolve(topology, policy(**ALIGNED), KUBELET)
    fitted, moved, took, cut = [0, 0, 0], list[int](), list[float](), 0
    for number in range(rounds):
        case = _case(rng, ours, load, number)
        plain = case.fits(case.allocations)
        fitted[0] += Fragmented(theirs, case.allocations, {}, case.demand, case.allowed).fits(
            case.allocations
        )
        fitted[1] += plain
        fitted[2] += plain
        if plain:
            continue
        begun = time.perf_counter()
        searched = fewest_moves(case.space, case.demand, case.pods, case.allowed)
        took.append((time.perf_counter() - begun) * 1000)
        cut += not searched.complete
        if searched.found is not None:
            fitted[2] += 1
            moved.append(searched.found.moved_cpus)
    kubelet, static, dynamic = fitted
    return Row(
        machine=name,
        cpus=len(topology.cpus),
        numa_nodes=len(ours.cpu_groups.numa_nodes),
        load=load,
        requests=rounds,
        kubelet=kubelet,
        static=static,
        dynamic=dynamic,
        moved=round(statistics.mean(moved), 2) if moved else 0.0,
        cut=cut,
        p50_ms=round(statistics.median(took), 2) if took else 0.0,
        max_ms=round(max(took), 2) if took else 0.0,
    )


def _case(rng: random.Random, known: NodePolicy, load: int, number: int) -> Fragmented:
    """A machine with pods at some load, and a pod that comes."""
    node, pods = Node(known), dict[str, PodView]()
    groups = known.cpu_groups
    total = (groups.cpus & ~known.reserved).bit_count()
    largest = max((mask & ~known.reserved).bit_count() for mask in groups.numa_nodes.values())
    budget = max(1, total * load // 100)

    def add(uid: int) -> None:
        used = total - node.cpus.free.bit_count()
        fitting = [size for size in SIZES if size <= min(largest, budget - used)]
        if not fitting:
            return
        view = pod(f"p{uid}", str(rng.choice(fitting)))
        try:
            node.place(view)
        except PlacementError:
            return
        pods[view.uid] = view

    for uid in range(total * 2):
        add(uid)
    for uid in range(total * 2, total * 2 + TURNOVER * len(pods)):
        if pods:
            gone = rng.choice(sorted(pods))
            node.release(gone)
            del pods[gone]
        add(uid)
    for uid in range(total * 9, total * 11):
        add(uid)
    free = node.cpus.free.bit_count()
    demand = pod(f"demand{number}", str(rng.randint(1, max(1, min(largest, free - 1, 16)))))
    allowed = frozenset((uid, "c0") for uid in pods)
    return Fragmented(known, dict(node.allocations), pods, demand, allowed)


def show_heading() -> None:
    """Print the heading of the table."""
    print(f"{'machine':32}{'CPUs':>5}{'nodes':>6}{'load':>5}", end="")
    print(f"{'kubelet':>9}{'Static':>8}{'moves':>7}{'moved':>7}{'cut':>5}{'p50 ms':>8}{'max':>8}")


def show(rows: Sequence[Row]) -> None:
    """Print lines of the table."""
    for row in rows:
        shares = [100 * one / row.requests for one in (row.kubelet, row.static, row.dynamic)]
        print(f"{row.machine:32}{row.cpus:5}{row.numa_nodes:6}{row.load:5}", end="")
        print("{:9.0f}{:8.0f}{:7.0f}".format(*shares), end="")
        print(f"{row.moved:7.1f}{row.cut:5}{row.p50_ms:8.2f}{row.max_ms:8.2f}", flush=True)


def check(count: int, seed: str) -> None:
    """Compare searches on small machines with all moves there are."""
    rng, found, done = random.Random(seed), 0, 0
    while done < count:
        case = fragmented(rng)
        if case is not None:
            done += 1
            found += check_search(case)
    print(f"{done} searches, {found} with moves: none could be done with fewer moved CPUs")


def main() -> None:
    """Measure every machine at every load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200, help="requests (default: %(default)s)")
    parser.add_argument("--machine", help="only this one")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--check", type=int, metavar="N", help="compare N searches instead")
    parser.add_argument("--seed", default="moves", help="of --check (default: %(default)s)")
    options = parser.parse_args()
    if options.check:
        check(options.check, options.seed)
        return
    rows: list[Row] = []
    show_heading()
    for name, topology in machines(options.machine):
        made = [measure(name, topology, load, options.rounds) for load in LOADS]
        show(made)
        rows += made
    if options.output:
        figures = {"rounds": options.rounds, "rows": [asdict(row) for row in rows]}
        options.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
