"""What tests do in a lab in which numapin runs as pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_api.names import NAMESPACE
from numapin_lab.errors import LabError
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.running_lab import RunningLab

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/numapin-operator"
COMPONENT = "app.kubernetes.io/component"


@dataclass(frozen=True)
class InstalledLab(RunningLab):
    """A lab that is up, with numapin's pods."""

    cluster: InstalledCluster

    def pods_of(self, component: str) -> list[dict[str, Any]]:
        """The pods of `operator`, `enforcer` or `standby`."""
        found = self.cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return [one for one in found if one["metadata"]["labels"].get(COMPONENT) == component]

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
        return next(self.kubepods.rglob(status["containerID"].partition("://")[2]))
