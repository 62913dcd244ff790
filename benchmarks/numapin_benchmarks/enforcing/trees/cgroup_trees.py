"""A tree of pods in the kernel, with a sleeping process in every container, and bare cgroups."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numapin_api.topology import Topology
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos
from numapin_enforcer.cgroups.tree import Version

PODS = 50
OWNER = "f" * 64
"""The id of the exclusive container."""

ID_LENGTH = 64

SLEEPERS = """
import os, sys, threading, time
threading.stack_size(65536)
for folder in sys.argv[2:]:
    if os.fork() == 0:
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write("0")
        for _ in range(int(sys.argv[1])):
            threading.Thread(target=time.sleep, args=(1e6,)).start()
        break
else:
    print("ready", flush=True)
time.sleep(1e6)
"""


@contextmanager
def pods(mounts: Mounts, topology: Topology) -> Iterator[CgroupNaming]:
    """50 shared pods of two containers, and a Guaranteed pod; removed at the end."""
    naming = CgroupNaming(Driver.CGROUPFS, f"numapin-bench-{secrets.token_hex(4)}")
    sleepers: list[subprocess.Popen[bytes]] = []
    with cgroups(mounts, topology, [naming.cgroup_root, *_paths(naming)]) as made:
        try:
            for folder in made:
                if len(folder.name) == ID_LENGTH:
                    sleepers.append(subprocess.Popen(["sleep", "3600"]))
                    (folder / "cgroup.procs").write_text(str(sleepers[-1].pid))
            yield naming
        finally:
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()


@contextmanager
def sleeping(containers: Iterable[Path], threads: int) -> Iterator[None]:
    """A process in each of these cgroups, with so many threads that sleep; ended at the end."""
    # The first thread sleeps as well. The children share the memory of one process.
    command = [sys.executable, "-c", SLEEPERS, str(threads - 1), *map(str, containers)]
    sleepers = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert sleepers.stdout is not None
        sleepers.stdout.readline()
        yield
    finally:
        os.killpg(sleepers.pid, signal.SIGKILL)
        sleepers.communicate()


@contextmanager
def others(mounts: Mounts, topology: Topology, count: int) -> Iterator[None]:
    """`count` cgroups outside kubepods; removed at the end."""
    root = f"numapin-bench-{secrets.token_hex(4)}"
    paths = [root, *(f"{root}/{number}" for number in range(count - 1))] if count else []
    with cgroups(mounts, topology, paths):
        yield


@contextmanager
def cgroups(mounts: Mounts, topology: Topology, paths: list[str]) -> Iterator[list[Path]]:
    """Cgroups with all CPUs and memory in the cpuset hierarchy; `paths` has parents first."""
    made: list[Path] = []
    try:
        for path in paths:
            made.append(mounts.cpuset / path)
            _make(mounts.version, made[-1], topology)
        yield made
    finally:
        for folder in reversed(made):
            folder.rmdir()


def _paths(naming: CgroupNaming) -> list[str]:
    """QoS classes, shared pods with a sandbox and two containers, the exclusive container's pod."""
    found = [naming.root, naming.qos_path(Qos.BURSTABLE), naming.qos_path(Qos.BEST_EFFORT)]
    for index in range(PODS):
        qos = Qos.BURSTABLE if index % 2 else Qos.BEST_EFFORT
        pod = naming.pod_path(qos, f"shared-{index}")
        found += [pod, *(f"{pod}/{index * 3 + one:064x}" for one in range(3))]
    pod = naming.pod_path(Qos.GUARANTEED, "owner")
    return [*found, pod, f"{pod}/{'e' * ID_LENGTH}", f"{pod}/{OWNER}"]


def _make(version: Version, folder: Path, topology: Topology) -> None:
    """Make one cgroup with the CPUs and memory of its parent."""
    if version is Version.V2:
        (folder.parent / "cgroup.subtree_control").write_text("+cpuset")
    folder.mkdir()
    if version is Version.V1:
        (folder / "cpuset.cpus").write_text(str(topology.online))
        (folder / "cpuset.mems").write_text(str(topology.mems))
