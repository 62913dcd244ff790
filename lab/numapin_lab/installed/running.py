"""What tests do in a lab in which numapin runs as pods."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_api.names import NAMESPACE
from numapin_lab.cluster import Cluster
from numapin_lab.errors import LabError
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.manifests import wait_rolled_out
from numapin_lab.node.cgroups import named
from numapin_lab.processes.daemons import kill
from numapin_lab.running_lab import RunningLab

PARTS: Final = ("operator", "enforcer", "standby")
NOWHERE: Final = "numapin-lab/nowhere"
"""A label that no node has; a DaemonSet that wants it has no pods."""
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/numapin-operator"
IN = f"--namespace={NAMESPACE}"
OWN_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
COMPONENT = "app.kubernetes.io/component"


@dataclass(frozen=True)
class InstalledLab(RunningLab):
    """A lab that is up, with numapin's pods."""

    cluster: InstalledCluster
    _own: set[str] = field(default_factory=set, init=False, compare=False)

    def cpusets(self) -> dict[str, CpuSet]:
        """The kernel's cpuset of every cgroup of pods but numapin's own, by path below kubepods."""
        self._learn_own()
        found = super().cpusets()
        self._learn_own()  # what has started meanwhile
        return {
            path: cpus for path, cpus in found.items() if not any(uid in path for uid in self._own)
        }

    def _learn_own(self) -> None:
        """Keep the UIDs of numapin's pods: a cgroup may be there a moment longer than its pod."""
        self._own.update(one["metadata"]["uid"] for one in self._pods())

    def kill(self, name: str) -> None:
        """Kill the operators or the enforcer, and have Kubernetes start no other.

        The processes stand still from the first moment on: those whose workload has no pods any
        more would else be asked to end, and would do so in good order.
        """
        pids = [self.process(one) for one in self.pods_of(name)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self._patch(name, away=True)
        ended = f"Kubernetes to delete the pods of the {name}"
        self.wait(lambda: all(_is_deleted(one) for one in self.pods_of(name)), ended)
        for pid in pids:
            kill(pid)
        self.wait(lambda: not self.pods_of(name), f"the pods of the {name} to be gone")

    def restart(self, name: str) -> None:
        """Start the operators or the enforcer; returns when they are ready, and one leads."""
        self._patch(name, away=False)
        wait_rolled_out(self.cluster.api, self.kubectl, only=f"numapin-{name}")
        if name == "operator":
            self.wait(self._is_led, "an operator to lead")

    def _is_led(self) -> bool:
        return self.leader() in {one["metadata"]["name"] for one in self.pods_of("operator")}

    def _patch(self, name: str, *, away: bool) -> None:
        """Let a workload have no pods, or those of its manifest again."""
        if name == "operator":
            replicas = 0 if away else self._replicas()
            self.kubectl("scale", "deployment/numapin-operator", f"--replicas={replicas}", IN)
            return
        selector = {NOWHERE: "" if away else None}
        patch = {"spec": {"template": {"spec": {"nodeSelector": selector}}}}
        workload = f"daemonset/numapin-{name}"
        self.kubectl("patch", workload, IN, "--type=merge", "--patch", json.dumps(patch))

    def _replicas(self) -> int:
        """Of the operator, as the manifests have them."""
        found = [one for one in self.cluster.documents() if one["kind"] == "Deployment"]
        return int(found[0]["spec"]["replicas"])

    def is_started(self, name: str) -> bool:
        """Whether the operators or the enforcer have a pod."""
        return bool(self.pods_of(name))

    def pods_of(self, component: str) -> list[dict[str, Any]]:
        """The pods of `operator`, `enforcer` or `standby`."""
        return [
            one for one in self._pods() if one["metadata"]["labels"].get(COMPONENT) == component
        ]

    def _pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.api.get(OWN_PODS)["items"]
        return found

    def leader(self) -> str:
        """The pod of the operator that leads; empty if the Lease is free."""
        holder = self.cluster.api.get(LEASE)["spec"].get("holderIdentity") or ""
        return str(holder).rpartition("_")[0]

    def process(self, pod: Mapping[str, Any]) -> int:
        """The first process of the one container of a pod, as the machine numbers it.

        Raises:
            LabError: it does not run.
        """
        (status,) = pod["status"]["containerStatuses"]
        folder = self.cgroup(pod)
        pids = [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
        if not pids:
            raise LabError(f"{status['name']} of {pod['metadata']['name']} does not run")
        return min(pids)

    def cgroup(self, pod: Mapping[str, Any]) -> Path:
        """The cgroup of the one container of a pod, in the hierarchy that has cpusets."""
        (status,) = pod["status"]["containerStatuses"]
        return named(self.kubepods, status["containerID"].partition("://")[2])


def running(cluster: Cluster) -> RunningLab:
    """The lab of a cluster that is up, whichever way numapin runs in it."""
    return InstalledLab(cluster) if isinstance(cluster, InstalledCluster) else RunningLab(cluster)


def _is_deleted(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]
