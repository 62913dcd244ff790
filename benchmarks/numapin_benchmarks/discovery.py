"""Time to discover a machine's hardware: numapin and hwloc on the same files.

    python -m numapin_benchmarks.discovery [--repeat N] [MACHINE...]

For each captured machine of tests/machines, and for this machine, it alternates between `discover`
in this process and a whole process of hwloc's `lstopo-no-graphics` (package hwloc-nox of Debian and
Ubuntu). hwloc's startup time, measured with `lstopo-no-graphics --version`, is subtracted. The
shortest runs are compared. Both read the same files through the page cache; hwloc reads more files
(L1 and L2 caches, dies, vendors) and prints a drawing.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from numapin_enforcer.hardware.discovery import discover
from numapin_lab.played.machines import captured_names, unpack

PEER = "lstopo-no-graphics"
PEER_FLAGS = ("--of", "console", "--whole-io", "--disallowed", "/dev/null", "--force")


@dataclass(frozen=True)
class Times:
    """Milliseconds of several runs of one thing."""

    runs: Sequence[float]

    def __str__(self) -> str:
        low, middle, high = min(self.runs), statistics.median(self.runs), max(self.runs)
        return f"{low:7.2f} {middle:7.2f} {high:7.2f}"

    @property
    def shortest(self) -> float:
        """The shortest run, which other processes disturbed least."""
        return min(self.runs)


def timed(action: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1000


def run_peer(root: Path, flags: Sequence[str]) -> None:
    """Run hwloc on the machine below `root`; on this machine if `root` is `/`."""
    environment = dict(os.environ)
    if root != Path("/"):
        environment |= {
            "HWLOC_FSROOT": str(root),
            "HWLOC_COMPONENTS": "linux,stop",
            "HWLOC_THISSYSTEM": "0",
            "HWLOC_HIDE_ERRORS": "2",
        }
    subprocess.run([PEER, *flags], env=environment, capture_output=True, check=True)


def measure(root: Path, repeat: int, with_peer: bool) -> tuple[Times, Times, Times]:
    """Our times, hwloc's and hwloc's startup, measured in turns after a warm-up run."""
    actions: list[Callable[[], object]] = [partial(discover, root / "sys", root / "proc")]
    if with_peer:
        actions += [partial(run_peer, root, PEER_FLAGS), partial(run_peer, root, ["--version"])]
    for action in actions:
        action()
    rounds = [[timed(action) for action in actions] for _ in range(repeat)]
    columns = [*zip(*rounds, strict=True), (), ()]
    return Times(columns[0]), Times(columns[1]), Times(columns[2])


def report(name: str, root: Path, repeat: int, with_peer: bool) -> None:
    """Measure one machine and print its row."""
    ours, peers, starts = measure(root, repeat, with_peer)
    cpus = len(discover(root / "sys", root / "proc").cpus)
    row = f"{name:31} {cpus:4}  {ours}"
    if with_peer:
        net = peers.shortest - starts.shortest
        row += f"  {peers}  {net:7.2f}  {net / ours.shortest:6.2f}"
    print(row)


def main() -> None:
    """Measure the named machines, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=30, help="runs of each (default: 30)")
    parser.add_argument("machine", nargs="*", help="names of tests/machines (default: all)")
    options = parser.parse_args()
    with_peer = shutil.which(PEER) is not None
    if not with_peer:
        print(f"{PEER} is not installed (apt-get install hwloc-nox): only our times are measured")
    print(
        f"{'':36}  {'ours, ms':^23}"
        + (f"  {'hwloc process, ms':^23}  min less" if with_peer else "")
    )
    heads = f"{'machine':31} CPUs  {'min':>7} {'median':>7} {'max':>7}"
    print(
        heads + (f"  {'min':>7} {'median':>7} {'max':>7}    start  hwloc/ours" if with_peer else "")
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in options.machine or captured_names():
            report(name, unpack(name, Path(folder)), options.repeat, with_peer)
    report("this machine, live", Path("/"), options.repeat, with_peer)


if __name__ == "__main__":
    main()
