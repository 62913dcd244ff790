"""What tests and benchmarks do on a running lab: apply objects, wait, read the kernel."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from numapin_api.cpuset import CpuSet
from numapin_api.forms.lines import print_line
from numapin_api.forms.spec import has_lines, read_spec, spec_with_lines
from numapin_api.names import API_VERSION, CPU_POLICY_KIND
from numapin_api.nodeassignment import NodeAssignment
from numapin_client.resources import NODE_ASSIGNMENTS, Key
from numapin_lab.cluster import Cluster
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.errors import LabError
from numapin_lab.node.agents import Agent
from numapin_lab.node.cgroups import below, named
from numapin_lab.node.image import IMAGE
from numapin_lab.processes.daemons import POLL_SECONDS, wait_until

WAIT_SECONDS = 240.0
"""Only ends a wait that is in vain; a busy machine may be several times slower than an idle one."""
KUBECTL_TIMEOUT = f"--timeout={WAIT_SECONDS:.0f}s"
NOT_SERVED_YET = ("no matches for kind", "could not find the requested resource")
ENDED = {"Failed", "Succeeded"}
SLEEP = ("sleep", "1000000")
BUSY = ("sh", "-c", "while true; do :; done")
_SETS = {1: "cpuset.cpus", 2: "cpuset.cpus.effective"}


def policy(name: str = "e2e", **spec: Any) -> dict[str, Any]:
    """A CpuPolicy; without `spec` it reserves one CPU on every node."""
    return {
        "apiVersion": API_VERSION,
        "kind": CPU_POLICY_KIND,
        "metadata": {"name": name},
        "spec": {"reserved": {"count": 1}, "releaseDelay": "0s"} | spec,
    }


def pod(
    name: str, command: Sequence[str] = SLEEP, cpu: str | None = None, memory: str = "16Mi"
) -> dict[str, Any]:
    """A pod of one container `main`: Guaranteed with `cpu` CPUs and `memory`, else BestEffort."""
    container: dict[str, Any] = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
    }
    if cpu is not None:
        amount = {"cpu": cpu, "memory": memory}
        container["resources"] = {"requests": amount, "limits": amount}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


@dataclass(frozen=True)
class RunningLab:
    """A lab that is up, with the operations of its users and administrators."""

    cluster: Cluster
    patience_seconds: ClassVar[float] = WAIT_SECONDS
    poll_seconds: ClassVar[float] = POLL_SECONDS

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's kubectl."""
        return self.cluster.plane.kubectl

    @property
    def node(self) -> str:
        """The one node's name."""
        return self.cluster.state.node

    @property
    def kubepods(self) -> Path:
        """The folder of all pods in the hierarchy that has cpusets."""
        cgroup = self.cluster.runtime.cgroup
        for folder in cgroup.folders():
            if (folder / "kubepods" / "cpuset.cpus").exists():
                return folder / "kubepods"
        raise LabError(f"no cpuset hierarchy has {cgroup.name}/kubepods: has the kubelet started?")

    def agent(self, name: str) -> Agent:
        """The operator or the enforcer."""
        return next(agent for agent in self.cluster.agents if agent.name == name)

    def kill(self, name: str) -> None:
        """Kill the operator or the enforcer."""
        self.agent(name).kill()

    def restart(self, name: str) -> None:
        """Start the operator or the enforcer; returns when it is ready."""
        self.agent(name).start()
        self.agent(name).wait_ready()

    def is_started(self, name: str) -> bool:
        """Whether the operator or the enforcer runs, or is being started."""
        return self.agent(name).daemon.pid() is not None

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """`kubectl apply` them, in order."""
        self.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(manifests))

    def accepts(self, *manifests: Mapping[str, Any]) -> bool:
        """Apply them; false if a kind is not served yet (see `accepted`)."""
        return self.accepted("apply", "-f", "-", text=yaml.safe_dump_all(manifests))

    def accepted(self, *arguments: str, text: str | None = None) -> bool:
        """Call kubectl; false if a kind is not served yet, some moments after its CRD was created.

        Raises:
            LabError: it failed for another reason.
        """
        try:
            self.kubectl(*arguments, text=text)
        except LabError as error:
            if any(why in str(error) for why in NOT_SERVED_YET):
                return False
            raise
        return True

    def delete(self, kind: str, *names: str) -> None:
        """Delete and wait until they are gone."""
        self.kubectl("delete", kind, *names, "--ignore-not-found", "--wait", KUBECTL_TIMEOUT)

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready` returns true.

        Raises:
            LabError: it has not in time.
        """
        wait_until(ready, what, self.patience_seconds, poll_seconds=self.poll_seconds)

    def eventually(self, read: Callable[[], object], wanted: object) -> None:
        """Wait until `read` returns `wanted`; fails with the last value."""
        eventually(read, wanted, self.patience_seconds, self.poll_seconds)

    def pod(self, name: str) -> dict[str, Any]:
        """One pod of the default namespace, from the API server."""
        found: dict[str, Any] = self.cluster.api.get(f"/api/v1/namespaces/default/pods/{name}")
        return found

    def wait_running(self, *names: str) -> None:
        """Return when the pods run.

        Raises:
            LabError: one has ended instead (the message is its description with its Events), or
                they do not all run in time.
        """
        self.wait(lambda: self._run(names), f"the pods {', '.join(names)} to run")

    def _run(self, names: Sequence[str]) -> bool:
        items = self.cluster.api.get("/api/v1/namespaces/default/pods")["items"]
        phases = {one["metadata"]["name"]: one["status"].get("phase") for one in items}
        for name in names:
            if phases.get(name) in ENDED:
                raise LabError(f"{name} has ended:\n{self.kubectl('describe', 'pod', name)}")
        return all(phases.get(name) == "Running" for name in names)

    def assignment(self) -> NodeAssignment | None:
        """The node's NodeAssignment as v1alpha1 has it, with what its enforcer reports."""
        found = read_node(self.cluster.api, self.node)
        return NodeAssignment.model_validate(found) if found else None

    def in_force(self) -> bool:
        """Whether the enforcer reports Ready for the newest spec."""
        assignment = self.assignment()
        if assignment is None or assignment.status is None:
            return False
        generation = assignment.metadata["generation"]
        ready = [one for one in assignment.status.conditions if one.type == "Ready"]
        return bool(ready) and (
            ready[0].status == "True" and assignment.status.observed_generation == generation
        )

    def wait_in_force(self) -> NodeAssignment:
        """Wait until the NodeAssignment is in force, and return it."""
        self.wait(self.in_force, "the NodeAssignment to be in force")
        assignment = self.assignment()
        assert assignment is not None
        return assignment

    def reported_exclusive(self) -> list[bool]:
        """Whether each container of the status is reported as exclusive."""
        assignment = self.assignment()
        status = assignment.status if assignment else None
        return [one.exclusive for one in status.containers] if status else []

    def patch_assignment(self, spec: Mapping[str, Any]) -> None:
        """Change fields of the NodeAssignment's spec, instead of the operator.

        Args:
            spec: the fields as v1alpha1 has them; they are written in the form that the object has.
        """
        body = self.cluster.api.get(NODE_ASSIGNMENTS.path(Key(self.node)))
        if has_lines(body["spec"]):
            spec = _with_lines(body, spec)
        patch = json.dumps({"spec": spec})
        self.kubectl("patch", "nodeassignment", self.node, "--type=merge", "-p", patch)

    def stalled(self, reason: str) -> str:
        """The message of the NodeAssignment's Stalled condition; empty without that reason."""
        assignment = self.assignment()
        conditions = assignment.status.conditions if assignment and assignment.status else ()
        for one in conditions:
            if (one.type, one.status, one.reason) == ("Stalled", "True", reason):
                return one.message
        return ""

    def cpusets(self) -> dict[str, CpuSet]:
        """The kernel's cpuset of every cgroup of pods, by path below kubepods."""
        name = _SETS[2 if (self.kubepods / "cgroup.controllers").exists() else 1]
        found = {}
        for folder in sorted(below(self.kubepods)):
            try:
                cpus = CpuSet.parse((folder / name).read_text(encoding="ascii").strip())
            except OSError:
                continue
            found[str(folder.relative_to(self.kubepods))] = cpus
        return found

    def container_id(self, pod_name: str, container: str = "main") -> str:
        """The id of a pod's container.

        Raises:
            LabError: it has no container yet.
        """
        found = self.pod(pod_name)
        statuses = found["status"].get("containerStatuses", ())
        ids = [one["containerID"] for one in statuses if one["name"] == container]
        if not ids or not ids[0]:
            raise LabError(f"{pod_name}/{container} has no container yet")
        return str(ids[0].partition("://")[2])

    def container(self, pod_name: str, container: str = "main") -> Path:
        """The cgroup of a running container."""
        return named(self.kubepods, self.container_id(pod_name, container))

    def allowed(self, pod_name: str) -> CpuSet:
        """The CPUs of every process of a pod's container, from Cpus_allowed_list in /proc."""
        cpus = CpuSet()
        for pid in (self.container(pod_name) / "cgroup.procs").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    key, _, value = line.partition(":")
                    if key == "Cpus_allowed_list":
                        cpus |= CpuSet.parse(value.strip())
        return cpus

    def events(self, pod_name: str) -> list[dict[str, Any]]:
        """The Events about the pod of this name, or about all that had it once it is gone."""
        path = "jsonpath={.metadata.uid}"
        uid = self.kubectl("get", "pod", pod_name, "--ignore-not-found", "-o", path)
        selected = f"involvedObject.name={pod_name}"
        if uid:
            selected += f",involvedObject.uid={uid}"
        found = self.kubectl.get("events", f"--field-selector={selected}")
        items: list[dict[str, Any]] = found["items"]
        return items

    def clear(self) -> None:
        """Delete every pod and policy; returns when none of their cgroups is left."""
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
        self.kubectl("delete", "cpupolicies", "--all")
        for name in ("operator", "enforcer"):
            if not self.is_started(name):
                self.restart(name)
        self.wait(lambda: self.assignment() is None, "the NodeAssignment to be deleted")
        self.wait(self._no_pods, "every pod's cgroup to be removed")

    def _no_pods(self) -> bool:
        return not [path for path in self.cpusets() if "pod" in path]


def _with_lines(body: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of v1beta1 that differ in a NodeAssignment once those of v1alpha1 are changed."""
    before, following = read_spec(body), body["metadata"]["generation"] + 1
    lines = dict(zip(before.lines, before.wire.get("containers") or (), strict=True))
    wire = before.wire | dict(spec)
    wanted = [
        next((line for line, known in lines.items() if known == one), print_line(one, following))
        for one in wire.get("containers") or ()
    ]
    later = {"assigned": wanted} | spec_with_lines(wire, wanted)
    return {key: one for key, one in later.items() if one != body["spec"].get(key)}


def eventually(
    read: Callable[[], object],
    wanted: object,
    seconds: float = WAIT_SECONDS,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Wait until `read` returns `wanted`; fails with the last value.

    Raises:
        AssertionError: it has not in time.
    """
    deadline = time.monotonic() + seconds
    while (last := read()) != wanted:
        assert time.monotonic() < deadline, f"after {seconds} s: {last!r}, wanted {wanted!r}"
        time.sleep(poll_seconds)
