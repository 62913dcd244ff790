"""`make demo`: apply the examples on a lab, and check the kernel."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from numapin_api.cpuset import CpuSet
from numapin_campaigns.laws.cgroup_tree import shared
from numapin_enforcer.cgroups.tree import contains
from numapin_lab.cluster import Cluster
from numapin_lab.components.build import Say, say
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.errors import LabError
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.uninstall import left_in_cluster, left_on_node, uninstall
from numapin_lab.leftovers import Traces, host_paths
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.container_cpus import ContainerCpus
from numapin_lab.processes.daemons import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REFUSED = r'jsonpath={range .status.refusals[*]}{.pod}: {.reason}: {.message}{"\n"}{end}'
REASON = "--field-selector=reason=NotEnoughCPUs"
COLUMNS = "--output=custom-columns=POD:.involvedObject.name,REASON:.reason,MESSAGE:.message"
ONLINE = Path("/sys/devices/system/cpu/online")
LEFT_SECONDS = 120
RUNNING_SECONDS = 300
PINNED_SECONDS = 300


def run(folder: LabFolder, command: str, keep: bool, progress: Say = say) -> None:
    """Bring a lab up, apply the examples, show and check the result, remove everything.

    Args:
        folder: the lab of the demo.
        command: how the user runs the lab's commands; it is shown.
        keep: leave it up.
        progress: takes one line.

    Raises:
        LabError: a container may run where it must not, or something is left at the end; the
            message says which and where.
    """
    before = host_paths()
    with _lab(folder, keep) as cluster:
        traces = Traces.of(folder.path, cluster.state, before)
        _pin(cluster, progress)
        _refuse(cluster, progress)
        if not keep and isinstance(cluster, InstalledCluster):
            _uninstall(cluster, progress)
    if keep:
        print(f"\nThe lab is still up. Use it:   export KUBECONFIG={folder.kubeconfig}")
        print(f"and remove it:                 {command} down --dir {folder.path}")
        return
    _nothing(traces.left(), f"on this machine, but the logs in {folder.path}")


def _pin(cluster: Cluster, progress: Say) -> None:
    """A pod gets an exclusive CPU, and its busy neighbour leaves that CPU."""
    _apply(cluster, progress, _example("CpuPolicy"), _example("trading"), _example("neighbour"))
    wait_until(lambda: bool(_exclusive(cluster)), "an exclusive CPU", PINNED_SECONDS)
    _show(cluster, ["get", "pods", "--output=wide"])
    _show(cluster, ["get", "cpupolicies"])
    _show(cluster, ["get", "nodeassignments,nodereports"])
    print("\nWhat the kernel shows:")
    print(kernel_table(cluster.containers()))
    check(_exclusive(cluster), cluster.containers())
    print("\nThe kernel agrees: only its container may run on each exclusive CPU.")


def _refuse(cluster: Cluster, progress: Say) -> None:
    """A pod that cannot get CPUs says why.

    The policy then reserves all CPUs: on a machine with two, the requests of numapin's own pods
    leave no room for a second pod that requests a whole one.
    """
    progress("demo: delete pod trading")
    cluster.kubectl("delete", "pod", "trading", "--wait")
    changed = _example("CpuPolicy")
    changed["spec"] = {"reserved": {"cpus": ONLINE.read_text().strip()}, "releaseDelay": "0s"}
    progress("demo: the policy now reserves every CPU")
    _apply(cluster, progress, changed)
    wait_until(lambda: _reserves(cluster, changed), "the changed policy", PINNED_SECONDS)
    _apply(cluster, progress, _example("analytics"))
    wait_until(lambda: "analytics" in _refused(cluster), "a refusal", PINNED_SECONDS)
    _show(cluster, ["get", "events", REASON, COLUMNS])
    _show(cluster, ["get", "nodeassignment", cluster.state.node, "--output", REFUSED])
    print("\nWhat the kernel shows:")
    print(kernel_table(cluster.containers()))


def _uninstall(cluster: InstalledCluster, progress: Say) -> None:
    """Remove numapin and the pods of the examples."""
    uninstall(cluster, lambda line: progress(f"demo: {line}"))
    _nothing(left_in_cluster(cluster.kubectl), "of numapin in the cluster")
    cluster.kubectl("delete", "pods", "--all", "--grace-period=1", "--wait")
    try:
        wait_until(lambda: not left_on_node(cluster), "the node to be as before", LEFT_SECONDS)
    except LabError as error:
        raise LabError("\n".join([str(error), *left_on_node(cluster)])) from error
    _nothing([], "of numapin on the node, but files that enforce nothing (docs/operations.md)")


def _nothing(left: Sequence[str], where: str) -> None:
    if left:
        raise LabError("\n".join([f"something is left {where}:", *left]))
    print(f"Nothing is left {where}.")


def check(exclusive: Mapping[tuple[str, str], CpuSet], views: Sequence[ContainerCpus]) -> None:
    """Compare the kernel with what is reported.

    Args:
        exclusive: the reported exclusive CPUs, by pod UID and container name.
        views: every container, from the kernel.

    Raises:
        LabError: an exclusive container runs on other CPUs, or another one may run on its CPUs.
    """
    tasks = {
        f"{view.pod_uid}/{view.container}/{pid}": (f"{_name(view)}, process {pid}", allowed)
        for view in views
        for pid, allowed in view.allowed.items()
    }
    owners = {f"{uid}/{name}": cpus for (uid, name), cpus in exclusive.items()}
    for owner, cpus in owners.items():
        own = [task for path, task in tasks.items() if contains(owner, path)]
        if not own:
            raise LabError(f"{owner} (pod/container) is exclusive on {cpus}, but does not run")
        for name, allowed in own:
            if allowed != cpus:
                raise LabError(f"{name}: on {allowed}, not on {cpus}")
    for one in shared(owners, {path: allowed for path, (_, allowed) in tasks.items()}):
        name, allowed = tasks[one.other]
        raise LabError(f"{name}: on {allowed}; {owners[one.owner]} is taken")


def kernel_table(views: Sequence[ContainerCpus]) -> str:
    """One line for each process."""
    rows = [("POD", "CONTAINER", "PID", "Cpus_allowed_list")]
    for view in views:
        for pid, allowed in sorted(view.allowed.items()):
            rows.append((view.pod, view.container, str(pid), str(allowed)))
    width = max(len(pod) for pod, *_ in rows)
    return "\n".join(f"{pod:<{width}} {name:<12} {pid:<8} {cpus}" for pod, name, pid, cpus in rows)


@contextlib.contextmanager
def _lab(folder: LabFolder, keep: bool) -> Iterator[Cluster]:
    """The lab; taken down at the end and on any error, unless `keep` is set."""
    try:
        yield folder.up()
    finally:
        if not keep:
            folder.down()


def _example(name: str) -> dict[str, Any]:
    """The pod of this name, or the policy."""
    files = [EXAMPLES / "policy.yaml", EXAMPLES / "pods.yaml"]
    documents = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    return next(one for one in documents if name in {one["kind"], one["metadata"]["name"]})


def _apply(cluster: Cluster, progress: Say, *documents: Mapping[str, Any]) -> None:
    """Apply one after the other; returns when all pods run."""
    for document in documents:
        progress(f"demo: apply {document['kind']} {document['metadata']['name']}")
        cluster.kubectl("apply", "-f", "-", text=yaml.safe_dump(document))
        wait_until(lambda: _all_running(cluster), "the pods to run", RUNNING_SECONDS)


def _all_running(cluster: Cluster) -> bool:
    return all(
        container.get("ready")
        for pod in cluster.pods()
        for container in pod["status"].get("containerStatuses") or [{}]
    )


def _exclusive(cluster: Cluster) -> dict[tuple[str, str], CpuSet]:
    found = read_node(cluster.api, cluster.state.node)
    if found is None:  # the operator has not seen the policy yet
        return {}
    status = found.get("status") or {}
    return {
        (one["podUID"], one["container"]): CpuSet.parse(one["cpus"])
        for one in status.get("containers", ())
        if one.get("exclusive")
    }


def _reserves(cluster: Cluster, policy: Mapping[str, Any]) -> bool:
    """Whether the operator has decided by this policy."""
    spec = (read_node(cluster.api, cluster.state.node) or {}).get("spec") or {}
    reserved = (spec.get("pools") or {}).get("reserved", "")
    return CpuSet.parse(reserved) == CpuSet.parse(policy["spec"]["reserved"]["cpus"])


def _refused(cluster: Cluster) -> set[str]:
    """The pods of which an Event says why they were refused."""
    events = cluster.kubectl.get("events", REASON)["items"]
    return {one["involvedObject"]["name"] for one in events}


def _show(cluster: Cluster, arguments: Sequence[str]) -> None:
    print(f"\n$ kubectl {shlex.join(arguments)}")
    print(cluster.kubectl(*arguments), end="")


def _name(view: ContainerCpus) -> str:
    return f"{view.namespace}/{view.pod} {view.container}"
