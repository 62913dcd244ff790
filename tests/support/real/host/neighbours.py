"""Who else may run where a partition is: programs of the host, and pods of a kubelet alone."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_lab.node.cgroups import open_to_children
from numapin_lab.node.played_kubelet import Kubelet
from support.real.kernel_cgroups import CPUSET, cpus_of

SPIN = ("sh", "-c", "while :; do :; done")


class Sampler:
    """Which tasks beside those of one cgroup were on some CPUs, as `/proc` says."""

    def __init__(self, cgroup: str, cpus: CpuSet) -> None:
        self.found: set[str] = set()
        self.samples = 0
        self._cgroup, self._cpus = cgroup, cpus
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")

    @contextmanager
    def sampling(self) -> Iterator["Sampler"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(0.1):
            self.samples += 1
            for stat in Path("/proc").glob("[0-9]*/stat"):
                self._look(stat)

    def _look(self, stat: Path) -> None:
        try:
            text = stat.read_text()
            cgroup = (stat.parent / "cgroup").read_text()
        except OSError:  # it has ended
            return
        fields = text.rpartition(")")[2].split()
        is_running, cpu, is_kernel = fields[0] == "R", int(fields[36]), fields[1] in {"0", "2"}
        if is_running and cpu in self._cpus and not is_kernel and self._cgroup not in cgroup:
            self.found.add(f"{text.partition(' (')[2].partition(')')[0]} on {cpu}: {cgroup}")


@contextmanager
def busy_on_the_host() -> Iterator[None]:
    """A program in no container that asks for every CPU."""
    with subprocess.Popen(SPIN) as program:
        try:
            os.sched_setaffinity(program.pid, range(4))
            yield
        finally:
            program.kill()


def new_guaranteed_pod(kubelet: Kubelet, number: int) -> tuple[str, str, str]:
    """Cgroups as kubelet and runc make them, with a busy process; returns what each may use."""
    pod = kubelet.pod_cgroup("", f"00000000-0000-0000-0000-{number:012}")
    kubelet.make(pod)
    container = CPUSET / pod / f"{number:064}"
    open_to_children(container.parent)
    container.mkdir()
    with subprocess.Popen(SPIN) as busy:
        (container / "cgroup.procs").write_text(str(busy.pid))
        status = Path(f"/proc/{busy.pid}/status").read_text().splitlines()
        (allowed,) = (one.split()[1] for one in status if one.startswith("Cpus_allowed_list"))
        found = (cpus_of(pod), cpus_of(f"{pod}/{container.name}"), allowed)
        busy.kill()
    container.rmdir()
    (CPUSET / pod).rmdir()
    return found
