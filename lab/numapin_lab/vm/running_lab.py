"""Operations for tests on a lab whose node is a virtual machine.

A command in the guest takes 0.1 to 1 s, so related files are read with one command.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from numapin_api.cpuset import CpuSet
from numapin_lab.cluster import VmCluster
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import wait_until
from numapin_lab.running_lab import RunningLab, eventually
from numapin_lab.vm.node_machine import NodeMachine

KUBEPODS = Path("/sys/fs/cgroup/kubepods")
KUBEPODS_SLICE = Path("/sys/fs/cgroup/kubepods.slice")
ONLINE = "/sys/devices/system/cpu/cpu{cpu}/online"
GROUP_FILES = {
    "cpuset.cpus": "cpus",
    "cpuset.cpus.effective": "cpus_effective",
    "cpuset.mems": "mems",
    "cpuset.mems.effective": "mems_effective",
}
TASK_LINES = {"Cpus_allowed_list": "cpus", "Mems_allowed_list": "mems"}
_NAMES = " -o ".join(f"-name {name}" for name in (*GROUP_FILES, "cgroup.procs"))
_TASKS = "|".join(TASK_LINES)
LOOK = f"""cd {{kubepods}} && find . -type f \\( {_NAMES} \\) | xargs grep -Hs ''
grep -HsE '^({_TASKS}):' /proc/[0-9]*/status; true"""


@dataclass(frozen=True)
class Group:
    """One cgroup: its cpuset files as kernel lists, and its processes."""

    cpus: str = ""
    cpus_effective: str = ""
    mems: str = ""
    mems_effective: str = ""
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Task:
    """One process: its allowed CPUs and NUMA nodes, from /proc/PID/status."""

    cpus: str = ""
    mems: str = ""


@dataclass(frozen=True)
class KernelState:
    """Every cgroup of pods, by its path below kubepods (`.` is kubepods), and their processes."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    tasks: Mapping[int, Task] = field(default_factory=dict)

    def of(self, container_id: str) -> tuple[Group, list[Task]]:
        """A container's cgroup and its processes.

        Raises:
            LabError: the container has no cgroup.
        """
        for path, group in self.groups.items():
            if container_of(path) == container_id:
                return group, [self.tasks[pid] for pid in group.pids if pid in self.tasks]
        raise LabError(f"container {container_id} has no cgroup in the guest")

    def without(self, *pod_uids: str) -> dict[str, Group]:
        """Every cgroup except those of these pods.

        With the cgroup driver systemd the kubelet writes `_` for each `-` of a UID.
        """
        uids = {name for uid in pod_uids for name in (uid, uid.replace("-", "_"))}
        return {
            path: group
            for path, group in self.groups.items()
            if not any(uid in path for uid in uids)
        }


def parse_look(text: str) -> KernelState:
    """Parse the output of LOOK: `file:line` for each line of each file.

    A cgroup or process that ended during the read is missing.
    """
    groups: dict[str, dict[str, Any]] = {}
    tasks: dict[int, dict[str, str]] = {}
    for file, value in _lines(text):
        folder, _, name = file.rpartition("/")
        if (process := re.fullmatch(r"/proc/(\d+)", folder)) is not None:
            key, _, found = value.partition(":")
            tasks.setdefault(int(process[1]), {})[TASK_LINES[key]] = found.strip()
        elif folder:
            group = groups.setdefault(folder.removeprefix("./"), {})
            if name == "cgroup.procs":
                group["pids"] = (*group.get("pids", ()), int(value))
            else:
                group[GROUP_FILES[name]] = value
    kept = {path: Group(**found) for path, found in sorted(groups.items())}
    inside = {pid for group in kept.values() for pid in group.pids}
    return KernelState(
        kept, {pid: Task(**found) for pid, found in sorted(tasks.items()) if pid in inside}
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        file, colon, value = line.partition(":")
        if colon:
            yield file, value


def container_of(path: str) -> str:
    """The id of the container or sandbox whose cgroup this is; the name of any other cgroup."""
    return path.rpartition("/")[2].removeprefix("cri-containerd-").removesuffix(".scope")


def parse_pages(numa_maps: str) -> dict[int, int]:
    """Anonymous pages on each NUMA node. Source: numa(7), "numa_maps"."""
    pages: dict[int, int] = {}
    for line in numa_maps.splitlines():
        if "anon=" in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                pages[int(node)] = pages.get(int(node), 0) + int(count)
    return pages


@dataclass(frozen=True)
class RunningVmLab(RunningLab):
    """A running lab whose node is a virtual machine."""

    cluster: VmCluster
    patience_seconds: ClassVar[float] = 600.0
    poll_seconds: ClassVar[float] = 0.5

    @property
    def machine(self) -> NodeMachine:
        """Runs commands in the guest."""
        return self.cluster.vm.machine

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready` returns true.

        Raises:
            LabError: it has not in time, or the machine has ended.
        """
        wait_until(ready, what, self.patience_seconds, self.machine.daemon, self.poll_seconds)

    def eventually(self, read: Callable[[], object], wanted: object) -> None:
        """Wait until `read` returns `wanted`; fails with the last value.

        Raises:
            LabError: the machine has ended.
        """

        def last() -> object:
            if self.machine.daemon.pid() is None:
                raise self.machine.daemon.failure("the virtual machine has ended")
            return read()

        eventually(last, wanted, self.patience_seconds, self.poll_seconds)

    @property
    def kubepods(self) -> Path:
        """The folder of all pods, in the guest."""
        return KUBEPODS_SLICE if self.cluster.state.systemd else KUBEPODS

    def look(self) -> KernelState:
        """Every cgroup of pods and every process, in one command."""
        return parse_look(self.machine(LOOK.format(kubepods=self.kubepods)))

    def read(self, *files: str) -> dict[str, str]:
        """The content of files, given as paths or shell patterns, by path; one command."""
        found: dict[str, str] = {}
        for file, line in _lines(self.machine(f"grep -Hs '' {' '.join(files)}; true")):
            found[file] = found.get(file, "") + line + "\n"
        return found

    def write(self, file: str, text: str) -> None:
        """Write one line to a file in the guest, as an administrator would.

        Raises:
            LabError: the kernel refused; the message has the shell's error.
        """
        self.machine(f"echo {shlex.quote(text)} >{file}")

    def set_online(self, cpu: int, online: bool) -> None:
        """Set a CPU of the guest online or offline."""
        self.write(ONLINE.format(cpu=cpu), str(int(online)))

    def restart_kubelet(self) -> None:
        """Stop the kubelet with SIGTERM, as a service manager does, and start it again."""
        self.machine("stop-kubelet; start-kubelet", self.patience_seconds)

    def pages(self, pids: tuple[int, ...]) -> dict[int, int]:
        """Anonymous pages of processes on each NUMA node."""
        files = [f"/proc/{pid}/numa_maps" for pid in pids]
        return parse_pages("".join(self.read(*files).values()))

    def delete(self, kind: str, *names: str) -> None:
        """Delete objects and wait until they are gone."""
        self.kubectl("delete", kind, *names, "--ignore-not-found", "--wait=false")
        gone = ("get", kind, *names, "--ignore-not-found", "--output=name")
        self.eventually(lambda: self.kubectl(*gone), "")

    def cpusets(self) -> dict[str, CpuSet]:
        """The effective cpuset of every cgroup of pods, by its path below kubepods."""
        groups = self.look().groups
        return {path: CpuSet.parse(group.cpus_effective) for path, group in groups.items()}

    def container(self, pod_name: str, container: str = "main") -> Path:
        """The cgroup of a running container, in the guest."""
        wanted = self.container_id(pod_name, container)
        for path in self.look().groups:
            if container_of(path) == wanted:
                return self.kubepods / path
        raise LabError(f"{pod_name}/{container} has no cgroup in the guest")

    def allowed(self, pod_name: str) -> CpuSet:
        """The allowed CPUs of all processes of a pod's container, from /proc in the guest."""
        _, tasks = self.look().of(self.container_id(pod_name))
        cpus = CpuSet()
        for task in tasks:
            cpus |= CpuSet.parse(task.cpus)
        return cpus
