"""On which CPUs the kernel lets every process of every container run."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_lab.node.cgroups import LabCgroup, below

PROC = Path("/proc")
SANDBOX = "(sandbox)"
# The names in cgroup v1 and v2. Source: cpuset(7), cgroups-v2 "Cpuset Interface Files".
EFFECTIVE = ("cpuset.effective_cpus", "cpuset.cpus.effective")


@dataclass(frozen=True)
class ContainerCpus:
    """One container in the kernel.

    `cpus` is the effective set of its cgroup; `allowed` gives for each process the CPUs that any of
    its threads may run on (Cpus_allowed_list).
    """

    pod_uid: str
    namespace: str
    pod: str
    container: str
    cpus: CpuSet
    allowed: Mapping[int, CpuSet]


def read_containers(cgroup: LabCgroup, pods: Sequence[Mapping[str, Any]]) -> list[ContainerCpus]:
    """Every container with a cgroup, sandboxes too; `pods` (from the API) give the names.

    A container that ends while it is read is left out.
    """
    names = container_names(pods)
    by_uid = {pod["metadata"]["uid"]: pod["metadata"] for pod in pods}
    found = []
    for folder in _container_folders(cgroup):
        uid = folder.parent.name.removeprefix("pod")
        pod = by_uid.get(uid, {})
        with contextlib.suppress(FileNotFoundError):
            view = ContainerCpus(
                pod_uid=uid,
                namespace=pod.get("namespace", "?"),
                pod=pod.get("name", uid),
                container=names.get(folder.name, SANDBOX),
                cpus=_effective(folder),
                allowed=dict(_allowed(folder)),
            )
            found.append(view)
    return sorted(found, key=lambda view: (view.namespace, view.pod, view.container))


def container_names(pods: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The container's name for each container id in the pods' status."""
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return {
        status["containerID"].partition("://")[2]: status["name"]
        for pod in pods
        for kind in kinds
        for status in pod.get("status", {}).get(kind, ())
        if "containerID" in status
    }


def _container_folders(cgroup: LabCgroup) -> Iterator[Path]:
    """`.../pod<uid>/<container id>` in the hierarchy that has cpusets."""
    for root in cgroup.folders():
        if (root / "cpuset.cpus").exists():
            yield from (found for found in below(root) if found.parent.name.startswith("pod"))


def _effective(folder: Path) -> CpuSet:
    for name in EFFECTIVE:
        if (folder / name).exists():
            return CpuSet.parse((folder / name).read_text().strip())
    raise FileNotFoundError(folder)


def _allowed(folder: Path) -> Iterator[tuple[int, CpuSet]]:
    for group in below(folder):
        with contextlib.suppress(OSError):  # the cgroup or the process has just ended
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    yield int(pid), _process_cpus(PROC / pid)


def _process_cpus(process: Path) -> CpuSet:
    cpus = CpuSet()
    for status in process.glob("task/*/status"):
        for line in status.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Cpus_allowed_list":
                cpus |= CpuSet.parse(value.strip())
    return cpus
