"""What looking at exclusive CPUs costs an enforcer with --cpu-metrics, on a large machine.

    python -m numapin_benchmarks.noise_cost [--cpus 448] [--interrupts 1000] [--tasks 10000]

It writes /proc of such a machine into a folder in memory: interrupts, each of which has come to
every third CPU, schedstat, and a folder for each task, one in nine of them a kernel thread of an
exclusive CPU. What the kernel takes to make these files is not in the figures. Prints milliseconds
of CPU, the shortest and the middle of the runs, and the memory that the process has more.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.telemetry.noise.look import Look, Looker
from numapin_enforcer.telemetry.noise.page import CpuPage
from numapin_enforcer.telemetry.noise.summary import Summary
from numapin_enforcer.telemetry.noise.tasks import TaskReader
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.threads.reader import ThreadReader

RESERVED = 4
"""CPUs that are not exclusive."""


def write_machine(folder: Path, cpus: int, interrupts: int, tasks: int) -> None:
    """The files of a machine; each interrupt has come to every third CPU."""
    head = " " * 11 + "".join(f"CPU{cpu:<8}" for cpu in range(cpus)) + "\n"
    with (folder / "interrupts").open("w") as file:
        file.write(head)
        for number in range(interrupts):
            counts = "".join(
                f"{(1234567 if (cpu + number) % 3 == 0 else 0):>10} " for cpu in range(cpus)
            )
            file.write(f"{number:>4}:{counts} PCI-MSIX-0000:00:01.0 {number}-edge      q{number}\n")
    domain = "domain0 " + "f" * 112 + " 1" * 45 + "\n"
    with (folder / "schedstat").open("w") as file:
        file.write("version 15\ntimestamp 1\n")
        for cpu in range(cpus):
            file.write(f"cpu{cpu} 0 0 12 4 7 3 99000 88000 11\n" + 3 * domain)
    for number in range(1, tasks + 1):
        _write_task(folder, number, RESERVED + number % (cpus - RESERVED) if number % 9 == 0 else 0)


def _write_task(folder: Path, number: int, cpu: int) -> None:
    place = folder / str(number) / "task" / str(number)
    place.mkdir(parents=True)
    fields = [0] * 50
    fields[4], fields[17], fields[34] = 0x00200000, number, cpu
    stat = f"{number} (kworker/{cpu}:1) S 2 " + " ".join(map(str, fields)) + "\n"
    (place / "stat").write_text(stat)
    (folder / str(number) / "schedstat").write_text("123456 789 55\n")


class Large(Looker):
    """Looks at all but the reserved CPUs."""

    def look(self, last: Converged) -> Look:  # noqa: ARG002
        """Look once."""
        cpus = CpuSet(self.counters.cpu_slices()) - CpuSet(range(RESERVED))
        interrupts = tuple(self.counters.interrupts(cpus))
        return Look((), cpus, self.tasks.on(cpus, {}), interrupts)


def measured(name: str, repeat: int, work: Callable[[], object]) -> None:
    """Print one row."""
    work()
    times = []
    for _ in range(repeat):
        began = time.thread_time()
        work()
        times.append(1000 * (time.thread_time() - began))
    print(f"{name:56} {min(times):7.1f} {statistics.median(times):7.1f} ms")


def resident_mib() -> float:
    """The memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def measure_memory(looker: Looker) -> None:
    """What an enforcer keeps of looks, and what a page takes besides."""
    before_mib = resident_mib()
    summary, kept = Summary(), looker.look(Converged())
    for _ in range(3):
        summary.note(looker.look(Converged()), 60.0)
    looks_mib = resident_mib()
    text = CpuPage(looker).text()
    print(f"{'memory: two readings kept':56} {looks_mib - before_mib:7.1f} MiB")
    grown_mib = resident_mib() - looks_mib
    title = f"memory: a page of {len(text) / 2**20:.1f} MiB"
    print(f"{title:56} {grown_mib:7.1f} MiB")
    assert kept.tasks.found, "no task was found"


def mask_of(masks: ThreadReader) -> Callable[[int], int | None]:
    """The affinity of a task of the folder, after reading one of the kernel's."""

    def mask(thread: int) -> int | None:
        own = masks.mask(os.getpid())
        return None if own is None else (-1 if thread % 9 == 0 else 1)

    return mask


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Measure each read of a machine."""
    write_machine(folder, options.cpus, options.interrupts, options.tasks)
    nowhere = Mounts(Version.V2, folder / "nowhere", None)
    counters = KernelCounters(nowhere, folder)
    masks = ThreadReader(nowhere, Path("/proc"))
    looker = Large(counters, TaskReader(folder, mask_of(masks), counters.thread_times))
    measure_memory(looker)
    for exclusive in (options.cpus - RESERVED, 64, 4):
        cpus = CpuSet(range(RESERVED, RESERVED + exclusive))
        title = f"{options.interrupts} interrupts, {exclusive} exclusive of {options.cpus} CPUs"
        measured(title, options.repeat, partial(_read, counters, cpus))
    measured(f"schedstat, {options.cpus} CPUs", options.repeat, counters.cpu_slices)
    everywhere = CpuSet(range(RESERVED, options.cpus))
    title = f"{options.tasks} tasks, one in nine on an exclusive CPU"
    measured(title, options.repeat, partial(looker.tasks.on, everywhere, {}))
    measured("a page, all of this", options.repeat, lambda: CpuPage(looker).text())
    live = KernelCounters(nowhere, Path("/proc"))
    title = f"interrupts of this machine, {os.cpu_count()} CPUs"
    measured(title, options.repeat, partial(_read, live, CpuSet((0,))))


def _read(counters: KernelCounters, cpus: CpuSet) -> int:
    return len(tuple(counters.interrupts(cpus)))


def main() -> None:
    """Measure in a folder in memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpus", type=int, default=448)
    parser.add_argument("--interrupts", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        measure(Path(name), options)


if __name__ == "__main__":
    main()
