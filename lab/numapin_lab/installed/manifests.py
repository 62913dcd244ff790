"""Apply numapin's manifests, wait until its pods are ready, and say why if they are not."""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from numapin_api.names import NAMESPACE
from numapin_lab.controlplane.api import ApiServer
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.errors import LabError

OVERLAY = Path(__file__).resolve().parents[3] / "manifests" / "overlays" / "default"
ROLLED_OUT_SECONDS = 300.0
POLL_SECONDS = 0.5
# The kubelet does not get further by itself with these.
FATAL = frozenset({"ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "CrashLoopBackOff"})
LOG_LINES = 15


def images(documents: Iterable[Mapping[str, Any]]) -> set[str]:
    """The images of all pods, with the names that a node looks for."""
    names = set()
    for document in documents:
        template = document.get("spec", {}).get("template", {}).get("spec", {})
        names |= {container["image"] for container in template.get("containers", ())}
    return {qualified(name) for name in names}


def qualified(image: str) -> str:
    """The full name of an image. Source: the Docker registry's names, as containerd reads them."""
    host, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in host or ":" in host or host == "localhost" else f"docker.io/{image}"


def rendered(kubectl: Kubectl, overlay: Path) -> list[dict[str, Any]]:
    """What `kubectl apply -k` applies."""
    return [one for one in yaml.safe_load_all(kubectl("kustomize", str(overlay))) if one]


def wait_rolled_out(
    api: ApiServer, kubectl: Kubectl, seconds: float = ROLLED_OUT_SECONDS, only: str = ""
) -> None:
    """Return when every pod of every Deployment and DaemonSet of numapin is ready.

    Args:
        api: the administrator's client.
        kubectl: to explain what is not ready.
        seconds: how long to wait.
        only: the name of the one that is waited for; empty for all.

    Raises:
        LabError: a pod cannot start, or they are not ready in time; the message has the state, the
            Events and the end of the log of each pod that is not ready.
    """
    deadline = time.monotonic() + seconds
    while missing := unready_workloads(api, only):
        pods = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        if any(reason in FATAL for pod in pods for reason in waiting(pod)):
            raise LabError(_explained("a pod of numapin does not start", pods, kubectl))
        if time.monotonic() > deadline:
            what = f"waited {seconds:.0f} s in vain for {', '.join(missing)} to be ready"
            raise LabError(_explained(what, pods, kubectl))
        time.sleep(POLL_SECONDS)


def unready_workloads(api: ApiServer, only: str = "") -> list[str]:
    """Deployments and DaemonSets, or the one of this name, whose newest pods are not all ready."""
    folder = f"/apis/apps/v1/namespaces/{NAMESPACE}"
    found = []
    for kind in ("deployments", "daemonsets"):
        listed = api.get(f"{folder}/{kind}")["items"]
        missing = [one["metadata"]["name"] for one in listed if not rolled_out(one)]
        found += [f"{kind.removesuffix('s')} {name}" for name in missing if only in ("", name)]
    return found


def rolled_out(workload: Mapping[str, Any]) -> bool:
    """Whether all pods of a Deployment or DaemonSet are of its newest template, and ready.

    Source: kubectl's rollout status, k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go.
    """
    status, spec = workload.get("status", {}), workload["spec"]
    if status.get("observedGeneration", 0) < workload["metadata"]["generation"]:
        return False
    if "replicas" in spec:
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
        return all(count == spec["replicas"] for count in counts)
    wanted: int = status.get("desiredNumberScheduled", 0)
    counts = [status.get(name, 0) for name in ("updatedNumberScheduled", "numberAvailable")]
    return wanted > 0 and all(count == wanted for count in counts)


def waiting(pod: Mapping[str, Any]) -> Iterator[str]:
    """Why containers of a pod wait."""
    for container in pod["status"].get("containerStatuses", ()):
        if found := container["state"].get("waiting"):
            yield str(found.get("reason", ""))


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def _explained(what: str, pods: Iterable[Mapping[str, Any]], kubectl: Kubectl) -> str:
    parts = [what]
    for pod in pods:
        if _ready(pod):
            continue
        name = pod["metadata"]["name"]
        reasons = ", ".join(waiting(pod)) or "no container waits"
        parts.append(f"pod {name}: {pod['status'].get('phase')}, {reasons}")
        parts += [*_events(name, kubectl), *_log(name, kubectl)]
    return "\n".join(parts)


def _events(name: str, kubectl: Kubectl) -> Iterator[str]:
    selector = f"--field-selector=involvedObject.name={name}"
    events = kubectl.get("events", f"--namespace={NAMESPACE}", selector)["items"]
    newest = {one["reason"]: one["message"] for one in events if one.get("type") == "Warning"}
    yield from (f"  {reason}: {message}" for reason, message in newest.items())


def _log(name: str, kubectl: Kubectl) -> Iterator[str]:
    options = (f"--namespace={NAMESPACE}", f"--tail={LOG_LINES}", "--ignore-errors")
    try:
        text = kubectl("logs", name, *options)
    except LabError as error:  # it has not started
        text = str(error)
    yield from (f"  | {line}" for line in text.splitlines())
