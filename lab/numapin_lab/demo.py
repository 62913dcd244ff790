"""`make demo`: apply the examples on a lab, and check the kernel."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from numapin_api.cpuset import CpuSet
from numapin_lab.cluster import Cluster
from numapin_lab.components.build import Say, say
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.container_cpus import ContainerCpus
from numapin_lab.processes.daemons import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REFUSED = r'jsonpath={range .spec.refused[*]}{.pod}: {.reason}: {.message}{"\n"}{end}'
RUNNING_SECONDS = 300
PINNED_SECONDS = 300


def run(folder: LabFolder, command: str, keep: bool, progress: Say = say) -> None:
    """Bring a lab up, apply the examples, show and check the result, take the lab down.

    Args:
        folder: the lab of the demo.
        command: how the user runs the lab's commands; it is shown.
        keep: leave it up.
        progress: takes one line.

    Raises:
        LabError: a container may run where it must not; the message says which and where.
    """
    with _lab(folder, keep) as cluster:
        for document in _examples():
            progress(f"demo: {document['kind']} {document['metadata']['name']}")
            cluster.kubectl("apply", "-f", "-", text=yaml.safe_dump(document))
            wait_until(lambda: _all_running(cluster), "the pods to run", RUNNING_SECONDS)
        wait_until(lambda: bool(_exclusive(cluster)), "an exclusive CPU", PINNED_SECONDS)
        _show(cluster)
        check(_exclusive(cluster), cluster.containers())
        print("\nThe kernel agrees: only its container may run on each exclusive CPU.")
    if keep:
        print(f"\nThe lab is still up. Use it:   export KUBECONFIG={folder.kubeconfig}")
        print(f"and remove it:                 {command} down --dir {folder.path}")


def check(exclusive: Mapping[tuple[str, str], CpuSet], views: Sequence[ContainerCpus]) -> None:
    """Compare the kernel with what is reported.

    Args:
        exclusive: the reported exclusive CPUs, by pod UID and container name.
        views: every container, from the kernel.

    Raises:
        LabError: an exclusive container runs on other CPUs, or another one may run on its CPUs.
    """
    for (uid, name), cpus in exclusive.items():
        holders = [view for view in views if (view.pod_uid, view.container) == (uid, name)]
        if not holders or not holders[0].allowed:
            raise LabError(
                f"container {name} of pod {uid} is exclusive on {cpus}, but does not run"
            )
        for view in views:
            for pid, allowed in view.allowed.items():
                if view in holders and allowed != cpus:
                    raise LabError(f"{_name(view)}, process {pid}: on {allowed}, not on {cpus}")
                if view not in holders and not allowed.isdisjoint(cpus):
                    raise LabError(f"{_name(view)}, process {pid}: on {allowed}; {cpus} is taken")


def kernel_table(views: Sequence[ContainerCpus]) -> str:
    """One line for each process."""
    rows = [("POD", "CONTAINER", "PID", "Cpus_allowed_list")]
    for view in views:
        for pid, allowed in sorted(view.allowed.items()):
            rows.append((view.pod, view.container, str(pid), str(allowed)))
    return "\n".join(f"{pod:<12} {name:<12} {pid:<8} {cpus}" for pod, name, pid, cpus in rows)


@contextlib.contextmanager
def _lab(folder: LabFolder, keep: bool) -> Iterator[Cluster]:
    """The lab; taken down at the end and on any error, unless `keep` is set."""
    try:
        yield folder.up()
    finally:
        if not keep:
            folder.down()


def _examples() -> list[dict[str, Any]]:
    """The policy, then the pods in the order of the file: earlier pods get their CPUs first."""
    files = [EXAMPLES / "policy.yaml", EXAMPLES / "pods.yaml"]
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


def _all_running(cluster: Cluster) -> bool:
    return all(
        container.get("ready")
        for pod in cluster.pods()
        for container in pod["status"].get("containerStatuses") or [{}]
    )


def _exclusive(cluster: Cluster) -> dict[tuple[str, str], CpuSet]:
    path = f"/apis/numapin.io/v1alpha1/nodeassignments/{cluster.state.node}"
    if not cluster.api.exists(path):  # the operator has not seen the policy yet
        return {}
    status = cluster.api.get(path).get("status", {})
    return {
        (found["podUID"], found["container"]): CpuSet.parse(found["cpus"])
        for found in status.get("containers", ())
        if found.get("exclusive")
    }


def _show(cluster: Cluster) -> None:
    for arguments in (
        ["get", "pods", "--output=wide"],
        ["get", "cpupolicies"],
        ["get", "nodeassignments"],
        ["get", "nodeassignment", cluster.state.node, "--output", REFUSED],
    ):
        print(f"\n$ kubectl {shlex.join(arguments)}")
        print(cluster.kubectl(*arguments), end="")
    print("\nWhat the kernel shows:")
    print(kernel_table(cluster.containers()))


def _name(view: ContainerCpus) -> str:
    return f"{view.namespace}/{view.pod} {view.container}"
