"""Time until an overwritten cpuset of a container is reverted."""

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from numapin_benchmarks.enforcing.labs import Bench
from numapin_benchmarks.figures import Figure, in_runs
from numapin_campaigns.recording.observer import Wakes, real_time
from numapin_lab.running_lab import BUSY, pod

BUDGET = "budget p99 < 20"
LIMIT_SECONDS = 30.0
LOOK_SECONDS = 0.05
RUNS = 5
SEED = 7


def measure(bench: Bench, times: int) -> Iterator[Figure]:
    """Overwrite the cpusets of an exclusive container and a neighbour in turns, `times` each."""
    bench.create(pod("neighbour", BUSY))
    bench.create(pod("owner", BUSY, cpu="1"))
    owner, neighbour = bench.group("owner"), bench.group("neighbour")
    bench.wait(lambda: cpus_of(owner) != cpus_of(neighbour), "the CPU to be exclusive")
    pause = random.Random(SEED)
    rows: dict[str, list[float]] = {
        "exclusive container's set reverted": [],
        "neighbour's set reverted": [],
    }
    for _ in range(times):
        for group, name in zip((owner, neighbour), rows, strict=True):
            time.sleep(pause.uniform(0.005, 0.05))
            rows[name] += repair([group], bench.lab.kubepods, LIMIT_SECONDS)
    for name, found in rows.items():
        yield Figure(name, "ms", in_runs(found, RUNS), BUDGET)
    bench.clear()


def repair(groups: Sequence[Path], kubepods: Path, seconds: float) -> list[float]:
    """Give each cgroup all CPUs; milliseconds from the first write until it is reverted.

    A child cannot have more CPUs than its parent, so its ancestors are overwritten first. The time
    ends when they are reverted too. It is infinite if that takes longer than `seconds`.
    """
    chains = [_chain(group, kubepods) for group in groups]
    original = {one: cpus_of(one) for chain in chains for one in chain}
    begun, took = [], [math.inf] * len(groups)
    with closing(Wakes()) as wakes, real_time():
        for one in original:
            wakes.add(str(one))
        for chain in chains:
            begun.append(time.monotonic())
            _overwrite(chain, cpus_of(kubepods))
        while math.inf in took and time.monotonic() - begun[0] < seconds:
            for number, chain in enumerate(chains):
                if took[number] == math.inf and all(cpus_of(one) == original[one] for one in chain):
                    took[number] = (time.monotonic() - begun[number]) * 1000
            wakes.wait(LOOK_SECONDS)
    return took


def _overwrite(chain: Sequence[Path], cpus: str) -> None:
    for one in chain:
        with suppress(PermissionError):  # an ancestor has been reverted already
            (one / "cpuset.cpus").write_text(cpus)


def _chain(group: Path, kubepods: Path) -> list[Path]:
    """The cgroup and its ancestors below kubepods, outermost first."""
    above = [one for one in group.parents if one.is_relative_to(kubepods) and one != kubepods]
    return [*reversed(above), group]


def cpus_of(group: Path) -> str:
    """The cpuset in the kernel."""
    return (group / "cpuset.cpus").read_text().strip()
