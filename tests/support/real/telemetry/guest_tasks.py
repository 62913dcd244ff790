"""Busy tasks in a virtual node, and what its enforcer measures of them."""

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.errors import LabError
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.telemetry.prometheus import parse

# What a node agent would use of an exclusive CPU is a foreign task, too: as docs/runbooks.md says,
# programs outside of pods get CPUs of their own.
CONFINE = """
for task in /proc/[0-9]*/task/[0-9]*; do
  program=; read -r program <"$task/cmdline"
  cgroup=; read -r cgroup <"$task/cgroup"
  case "$program $cgroup" in
    " "* | *kubepods*) ;;
    *) taskset -p {mask:x} "${{task##*/}}" >/dev/null ;;
  esac
done 2>/dev/null; true"""


ROOT = Path("/sys/fs/cgroup")


@contextmanager
def confined(lab: RunningVmLab, cpus: range, all_cpus: range) -> Iterator[None]:
    """Keep all tasks outside of pods on CPUs, but for threads of the kernel."""
    lab.machine(CONFINE.format(mask=_mask(cpus)))
    try:
        yield
    finally:
        lab.machine(CONFINE.format(mask=_mask(all_cpus)))


@contextmanager
def busy(lab: RunningVmLab, cpu: int, cgroup: Path | None = None) -> Iterator[None]:
    """A process that never waits on a CPU, in a cgroup or in the root of all."""
    join = f"echo $$ >{cgroup or ROOT}/cgroup.procs; "
    # The kernel weighs the pods of the whole node against this process alone, and against a slice
    # of systemd by the slice's weight, whatever the priority of its processes.
    first = "" if cgroup else "renice -n -20 $$; "
    burn = f'{first}exec taskset {1 << cpu:x} sh -c "while :; do :; done"'
    output = lab.machine(f"sh -c '{join}{burn}' >/dev/null 2>&1 & echo $!")
    pid = int(output.split()[-1])
    try:
        yield
    finally:
        lab.machine(f"kill -9 {pid}; while [ -e /proc/{pid}/stat ]; do sleep 0.1; done")


SAMPLE_SECONDS = 11.0
"""Twice the time between two samples, so that there is a new one in it."""


@dataclass(frozen=True)
class Rates:
    """What the enforcer measured in a time of one or more samples.

    Attributes:
        mispinned: containers on whose CPUs others ran, at the end.
        overlap: CPU time of others on exclusive CPUs, in seconds for each second.
        run_delay: waiting of runnable threads of exclusive containers, likewise.
    """

    mispinned: float
    overlap: float
    run_delay: float

    def is_quiet(self) -> bool:
        """Whether nothing but threads of the kernel ran on exclusive CPUs."""
        return self.mispinned == 0 and self.overlap < 0.05 and self.run_delay < HALF_DELAY

    def is_shared(self) -> bool:
        """Whether a foreign task had most of a CPU, and a container's task waited for it.

        An emulated CPU that does not run loses ticks, so less overlap is seen than there is.
        """
        return self.mispinned == 1 and self.overlap > 0.2 and self.run_delay > HALF_DELAY


HALF_DELAY = 0.6
"""More than a task waits that is alone on an emulated CPU (up to 0.3 of the time was seen on a busy
machine), and less than it waits beside another one that takes nearly all of the CPU."""


def rates_in(lab: RunningVmLab, check: Callable[[Rates], bool]) -> Rates:
    """Wait for an interval between two of the enforcer's samples of which `check` holds."""
    found: list[Rates] = []
    before = [_read(lab)]

    def holds() -> bool:
        with suppress(OSError):
            now = _read(lab)
            elapsed_seconds = now[0] - before[-1][0]
            if elapsed_seconds >= SAMPLE_SECONDS:
                gains = [(b - a) / elapsed_seconds for a, b in zip(before[-1], now, strict=True)]
                found.append(Rates(now[1], gains[2], gains[3]))
                before.append(now)
        return bool(found) and check(found[-1])

    try:
        lab.wait(holds, "other rates of the enforcer")
    except LabError as error:
        raise LabError(f"{error}; the last were {found[-5:]}") from error
    return found[-1]


def _read(lab: RunningVmLab) -> tuple[float, ...]:
    """The guest's uptime, and the values of the metrics."""
    (port,) = (one.port for one in lab.cluster.agents if one.name == "enforcer")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        page = parse(answer.read().decode())
    uptime = lab.machine("cat /proc/uptime").split()[0]
    return (
        float(uptime),
        page["numapin_mispinned_containers"]['reason="ForeignTasks"'],
        page["numapin_overlap_seconds_total"][""],
        page["numapin_run_delay_seconds_total"][""],
    )


def _mask(cpus: range) -> int:
    return sum(1 << cpu for cpu in cpus)
