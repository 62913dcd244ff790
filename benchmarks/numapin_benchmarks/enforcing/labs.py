"""Labs to measure on; pods are created by single API calls, as kubectl takes 0.1 s for each."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_benchmarks.surroundings import progress
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.cgroups import LabCgroup, below, named
from numapin_lab.running_lab import RunningLab, policy

PODS = "/api/v1/namespaces/default/pods"
AGENTS = frozenset({"operator", "enforcer"})
POLICY = "bench"
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Bench:
    """A running lab. `peer`: without numapin, the kubelet has the static policy."""

    lab: RunningLab
    name: str
    peer: bool = False

    def create(self, body: Mapping[str, Any]) -> None:
        """Create a pod that is already bound to the node."""
        bound = {**body, "spec": {**body["spec"], "nodeName": self.lab.node}}
        self.lab.cluster.api.request("POST", PODS, bound)

    def kill(self, *names: str) -> None:
        """Delete pods with grace period 0, which removes them from the API at once."""
        for name in names:
            grace = {"gracePeriodSeconds": 0}
            self.lab.cluster.api.request("DELETE", f"{PODS}/{name}", grace)

    def container(self, name: str) -> str:
        """The id of a pod's one container, as soon as its status has it."""
        found: list[str] = []

        def known() -> bool:
            statuses = self.get(name)["status"].get("containerStatuses") or [{}]
            found.extend(filter(None, [statuses[0].get("containerID")]))
            return bool(found)

        self.wait(known, f"the container of {name}")
        return found[0].partition("://")[2]

    def group(self, name: str) -> Path:
        """The cgroup of a pod's one container."""
        id_ = self.container(name)
        return named(self.lab.kubepods, id_)

    def process(self, name: str) -> Path:
        """The first process of a pod's one container, in /proc."""
        processes = self.group(name) / "cgroup.procs"
        self.wait(lambda: bool(processes.read_text()), f"a process of {name}")
        return Path("/proc") / processes.read_text().split()[0]

    def log(self, name: str) -> Path:
        """The log file of a pod's one container."""
        uid = self.get(name)["metadata"]["uid"]
        logs = self.lab.cluster.kubelet.pod_logs
        return logs / f"default_{name}_{uid}" / "main" / "0.log"

    def get(self, name: str) -> dict[str, Any]:
        """One pod."""
        found: dict[str, Any] = self.lab.cluster.api.get(f"{PODS}/{name}")
        return found

    def wait(self, ready: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait for something to become true.

        Raises:
            LabError: it did not become true in time.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise LabError(f"{self.name}: waited {seconds:.0f} s for {what}, without success")
            time.sleep(POLL_SECONDS)

    def clear(self) -> None:
        """Delete every pod; returns when their cgroups are gone and no CPU is exclusive."""
        for one in self.lab.cluster.pods():
            try:
                self.kill(one["metadata"]["name"])
            except AnswerError as error:
                if error.status != 404:
                    raise
        self.wait(self._empty, "every pod to go")
        if not self.peer:
            self.wait(self._free, "the NodeAssignment to be empty or gone")

    def _empty(self) -> bool:
        return not any(one.parent.name.startswith("pod") for one in below(self.lab.kubepods))

    def _free(self) -> bool:
        found = read_node(self.lab.cluster.api, self.lab.node)
        if found is None:
            return True
        spec, status = found["spec"], found.get("status") or {}
        observed = status.get("observedGeneration") == found["metadata"]["generation"]
        return observed and not spec.get("containers") and not status.get("running")


@contextmanager
def numapin() -> Iterator[Bench]:
    """A lab with operator and enforcer, and a policy in force that reserves one CPU."""
    with _lab("numapin", frozenset(), {}) as lab:
        lab.apply(policy(POLICY))
        lab.wait_in_force()
        yield Bench(lab, "numapin")


@contextmanager
def static_kubelet(reconcile_seconds: int) -> Iterator[Bench]:
    """A lab without numapin whose kubelet has the static policy and reserves one CPU."""
    name = f"kubelet static, {reconcile_seconds} s"
    settings = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "cpuManagerReconcilePeriod": f"{reconcile_seconds}s",
    }
    with _lab(name, AGENTS, settings) as lab:
        yield Bench(lab, name, peer=True)


@contextmanager
def _lab(name: str, without: frozenset[str], kubelet: Mapping[str, Any]) -> Iterator[RunningLab]:
    """A new lab; removed at the end."""
    progress(f"a lab: {name}")
    with tempfile.TemporaryDirectory(prefix="numapin-bench-") as scratch:
        folder = LabFolder(Path(scratch))
        try:
            cluster = folder.up(without, progress=lambda _: None, kubelet=kubelet)
            _weigh(cluster.runtime.cgroup)
            yield RunningLab(cluster)
        finally:
            folder.down()


def _weigh(cgroup: LabCgroup) -> None:
    """Give the lab's pods the weight against daemons that kubepods has on a node (v1).

    On a node it is 1024 for each CPU at the root of the hierarchy; the lab's is one level below.
    """
    for folder in cgroup.folders():
        if (folder / "cpu.shares").exists():
            (folder / "cpu.shares").write_text(str(1024 * (os.cpu_count() or 1)))
