"""Remove numapin with the README's commands, and look for what is left in cluster and node."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_lab.components.build import Say
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.vm_cluster import InstalledVmCluster
from numapin_lab.node.cgroups import below
from numapin_lab.processes.daemons import wait_until

RELEASED_SECONDS = 240
DELETED = "--timeout=240s"
CLUSTER_KINDS = (
    *("namespaces", "customresourcedefinitions", "clusterroles", "clusterrolebindings"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings", "priorityclasses"),
    *("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "apiservices"),
)
# Documented in docs/operations.md, "Uninstall": they enforce nothing.
KEPT = frozenset(
    {
        *("assignment.json", "heartbeat", "host-cgroups.json", "mems.json", "quotas.json"),
        "writer.lock",
    }
)


def uninstall(
    cluster: InstalledCluster | InstalledVmCluster, progress: Say = lambda _: None
) -> None:
    """Run the commands of the README's section "Uninstall"; returns when all objects are gone.

    Raises:
        LabError: a node is not released, or an object is not deleted in time.
    """
    kubectl = cluster.kubectl
    progress("kubectl delete cpupolicies --all")
    kubectl("delete", "cpupolicies", "--all", DELETED)
    what = "the NodeAssignments to be deleted"
    wait_until(lambda: not kubectl.get("nodeassignments")["items"], what, RELEASED_SECONDS)
    progress("kubectl delete -k manifests/overlays/default")
    kubectl("delete", "-k", str(cluster.overlay), DELETED)


def left_in_cluster(kubectl: Kubectl) -> list[str]:
    """Objects of the cluster, as `kubectl get -o name` prints them, that are numapin's."""
    names = kubectl("get", ",".join(CLUSTER_KINDS), "--output=name").split()
    return [name for name in names if "numapin" in name]


def left_on_node(cluster: InstalledCluster) -> list[str]:
    """What numapin's pods have left on the node, a line for each.

    A cgroup whose CPUs differ from its parent's counts, because all CPUs are shared again. Files
    that are `KEPT` do not count.
    """
    return [
        *_narrowed(cluster),
        *(f"mount {at}" for at in _mounts(cluster)),
        *(f"file {path}" for path in _files(cluster)),
    ]


def _narrowed(cluster: InstalledCluster) -> Iterator[str]:
    for root in cluster.runtime.cgroup.folders():
        if not (root / "cpuset.cpus").exists():
            continue
        for folder in below(root / "kubepods"):
            try:
                own, parents = (_cpus(one) for one in (folder, folder.parent))
            except OSError:  # removed between listing and reading
                continue
            if own != parents:
                yield f"cgroup {folder} has CPUs {own}, its parent {parents}"


def _cpus(group: Path) -> CpuSet:
    for name in ("cpuset.effective_cpus", "cpuset.cpus.effective"):
        if (group / name).exists():
            return CpuSet.parse((group / name).read_text().strip())
    raise FileNotFoundError(group)


def _mounts(cluster: InstalledCluster) -> Iterator[str]:
    """Mounts of containers and of volumes, in the node's mount namespace."""
    for line in _on_node(cluster, "cat", "/proc/self/mounts").splitlines():
        target = line.split()[1]
        if "/rootfs" in target or "/pods/" in target or "numapin-system" in target:
            yield target


def _files(cluster: InstalledCluster) -> Iterator[str]:
    found = _on_node(cluster, "find", "/var/lib/numapin", "/run/numapin", "-type", "f")
    yield from (path for path in found.split() if Path(path).name not in KEPT)


def _on_node(cluster: InstalledCluster, *command: str) -> str:
    answer = subprocess.run(
        cluster.machine.inside(command),
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return answer.stdout
