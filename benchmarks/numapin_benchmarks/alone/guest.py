"""In the virtual machine: measures a service on CPU 3 beside what each scenario lets run there.

Prints a line `row {...}` for each. There is no API server and no kubelet: cgroups are made as the
kubelet makes them, and the enforcer follows a saved assignment.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numapin_benchmarks.alone.counted import count
from numapin_benchmarks.alone.scenarios import BY_BOOT, SCENARIOS, Scenario
from numapin_enforcer.assignment.copy_file import CopyFile

CGROUPS = Path("/sys/fs/cgroup")
SERVICE = "numapin_benchmarks.alone.service"
CPU = "3"
OTHERS = "0-2"
SPIN = ("sh", "-c", "while :; do :; done")
TALK = ("sh", "-c", 'while :; do busybox wget -q -O /dev/null "$0"; done')
PODS = {
    "service": f"kubepods/podservice/{1:064x}",
    "busy": f"kubepods/burstable/podbusy/{2:064x}",
}
HOST = ("system.slice/busy.service", "user.slice/busy.scope")
PATIENCE_SECONDS = 240.0
SETTLE_SECONDS = 12.0


def make(path: str) -> Path:
    """Make a cgroup and those above it, with cpusets."""
    folder = CGROUPS / path
    if not folder.exists():
        parent = (
            make(str(folder.parent.relative_to(CGROUPS))) if folder.parent != CGROUPS else CGROUPS
        )
        (parent / "cgroup.subtree_control").write_text("+cpuset")
        folder.mkdir()
    return folder


def start(cgroup: Path, *command: str, log: Path = Path(os.devnull)) -> subprocess.Popen[bytes]:
    """Start a program in a cgroup."""
    enter = ("sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$@"', str(cgroup))
    with log.open("ab") as file:
        return subprocess.Popen([*enter, *command], stdout=file, stderr=file)


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until it holds."""
    end_seconds = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end_seconds:
            sys.exit(f"waited {PATIENCE_SECONDS:.0f} s in vain: {what}")
        time.sleep(0.1)


class World:
    """The service, what is busy beside it, and an enforcer if a scenario has one."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self._url = folder, url
        self.pods = {name: make(path) for name, path in PODS.items()}
        self.host = [make(path) for path in HOST]
        make("kubepods/besteffort")
        self.ours = make("ours")
        self.answers = folder / "answers"
        self.service = start(self.pods["service"], sys.executable, "-m", SERVICE, log=self.answers)
        self.busy: list[subprocess.Popen[bytes]] = []
        self._enforcer: subprocess.Popen[bytes] | None = None
        self._generation = 0

    def be_busy(self) -> None:
        """Three busy processes in a pod, three on the host, and a busy network."""
        for cgroup in (self.pods["busy"],) * 3 + (self.host[0],) * 2 + (self.host[1],):
            self.busy.append(start(cgroup, *SPIN))
        self.busy.append(start(self.host[0], *TALK, self._url))

    def halt(self, *, on: bool) -> None:
        """Stop what is busy, or let it go on: an emulated machine starts no program beside it."""
        for one in self.busy:
            one.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    def unpin(self) -> None:
        """Give containers all CPUs, as they have them before an enforcer starts."""
        for one in self.pods.values():
            (one / "cpuset.cpus").write_text(f"0-{CPU}")

    def pin(self, *, others: bool) -> None:
        """Write the cpusets of containers as the kubelet's static policy does."""
        (self.pods["service"] / "cpuset.cpus").write_text(CPU)
        if others:
            (self.pods["busy"] / "cpuset.cpus").write_text(OTHERS)

    def enforce(self, more: Mapping[str, Any]) -> None:
        """Have the enforcer follow an assignment, and wait until it is in force."""
        if self._enforcer is not None:
            self._enforcer.kill()
            self._enforcer.wait()
        self._generation += 1
        saved = {"node": "guest", "uid": "u", "generation": self._generation, "spec": spec(more)}
        CopyFile(self.folder / "state", "guest").write(saved)
        (self.folder / "kubeconfig").write_text(json.dumps(KUBECONFIG))
        options = [
            f"--{name}-dir={self.folder / name}" for name in ("state", "run", "kubelet-state")
        ]
        options += [f"--kubeconfig={self.folder / 'kubeconfig'}", "--cri-socket=/run/none.sock"]
        command = (sys.executable, "-m", "numapin_enforcer", "--node-name=guest", *options)
        self._enforcer = start(self.ours, *command, log=self.folder / "enforcer.log")

    def cpus(self, cgroup: Path) -> str:
        """The CPUs that the kernel gives a cgroup."""
        return (cgroup / "cpuset.cpus.effective").read_text().strip()

    def in_force(self, scenario: Scenario) -> bool:
        """Whether the kernel has what a scenario asks for."""
        own = self.pods["service"]
        wanted = [self.cpus(own) == CPU, self.cpus(self.pods["busy"]) == OTHERS]
        system = scenario.spec.get("system", {})
        if "processes" in system:
            wanted += [self.cpus(one) == OTHERS for one in self.host]
        if "interrupts" in system:
            wanted.append((self.folder / "state" / "interrupts.json").exists())
        if "isolation" in scenario.spec:
            wanted.append((own / "cpuset.cpus.partition").read_text().strip() == "isolated")
        return all(wanted)

    def measure(self, seconds: float) -> dict[str, float]:
        """What is counted within some seconds, and how late answers are."""
        before, began = count(self.service.pid), time.monotonic()
        time.sleep(seconds)
        found = count(self.service.pid).since(before) | {"seconds": time.monotonic() - began}
        rows = (line.split() for line in self.answers.read_text().splitlines())
        late = sorted(float(one) for row in rows if float(row[0]) >= began for one in row[1:])
        cpus = len(os.sched_getaffinity(self.service.pid))
        return found | {"cpus": cpus, "answers": len(late), "p99": late[len(late) * 99 // 100]}


KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
}


def spec(more: Mapping[str, Any]) -> dict[str, Any]:
    """The assignment: the service has its CPU exclusively."""
    container = {"podUID": "service", "namespace": "d", "pod": "service", "container": "main"}
    return {
        "mode": "Static",
        "pools": {"reserved": "0", "shared": OTHERS},
        "containers": [container | {"cpus": CPU, "mems": "", "exclusive": True}],
        "refused": [],
        **more,
    }


def measured(world: World, scenario: Scenario, seconds: float) -> dict[str, float]:
    """Bring a scenario about, and measure."""
    if scenario.pins:
        world.pin(others=scenario.name != BY_BOOT)
    if scenario.enforces:
        world.halt(on=True)
        if not scenario.spec:
            world.unpin()
            world.pin(others=False)
        world.enforce(scenario.spec)
        until(lambda: world.in_force(scenario), f"{scenario.name} to be in force")
        world.halt(on=False)
    time.sleep(SETTLE_SECONDS)
    return world.measure(seconds)


def main() -> None:
    """Measure the scenarios that are named, in their order."""
    url, seconds, names = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    world = World(Path(tempfile.mkdtemp(dir="/run")), url)
    is_busy = False
    for scenario in (one for one in SCENARIOS if one.name in names):
        if scenario.busy and not is_busy:
            world.be_busy()
            is_busy = True
        try:
            row = measured(world, scenario, seconds)
        except SystemExit as error:
            print((world.folder / "enforcer.log").read_text()[-3000:], error, flush=True)
            raise
        print("row", json.dumps({"name": scenario.name, **row}), flush=True)
    os._exit(0)  # what is busy ends with the machine


if __name__ == "__main__":
    main()
