"""The pods of `numapin plan`, and those that a real kube-controller-manager creates."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from numapin_cli.inputs.manifests import Manifest, read_manifests
from numapin_cli.inputs.objects import combined
from numapin_client.resources import Json
from numapin_lab.components.build import provide
from numapin_lab.controlplane.controllers import controller_manager
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.daemons import kill
from numapin_lab.processes.ports import choose
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView

Body = dict[str, Any]

LOOKS: Final = 120
"""One a second: a CronJob runs at the next full minute."""

RESOURCES: Final = {"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "64Mi"}}


def taint(key: str, effect: str) -> Body:
    return {"key": key, "effect": effect}


NODES: Final[Mapping[str, tuple[Body, Body]]] = {
    "plain": ({}, {}),
    "fast": ({"pool": "fast", "size": "8"}, {}),
    "tainted": ({"pool": "fast"}, {"taints": [taint("pool", "NoSchedule")]}),
    "preferred": ({}, {"taints": [taint("pool", "PreferNoSchedule")]}),
    "cordoned": ({}, {"unschedulable": True}),
    "not-ready": ({}, {"taints": [taint("node.kubernetes.io/not-ready", "NoSchedule")]}),
    "gone": ({}, {"taints": [taint("node.kubernetes.io/unreachable", "NoExecute")]}),
    "full": ({}, {"taints": [taint("node.kubernetes.io/disk-pressure", "NoSchedule")]}),
    "full-execute": ({}, {"taints": [taint("node.kubernetes.io/disk-pressure", "NoExecute")]}),
    "alone": ({}, {"taints": [taint("node.kubernetes.io/network-unavailable", "NoSchedule")]}),
}
"""Nodes with their labels and what is in their spec."""


def requires(*expressions: tuple[str, str, list[str]], key: str = "matchExpressions") -> Body:
    listed = [{"key": one, "operator": how, "values": values} for one, how, values in expressions]
    required = {"nodeSelectorTerms": [{key: listed}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": affinity}}


def set_of(kind: str, name: str, pod: Body | None = None, /, **spec: Any) -> Body:
    """A workload of apps/v1 with a selector."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": {"a": "b"}}, "spec": _pod(pod)}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def job(name: str, **spec: Any) -> Body:
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod({"restartPolicy": "Never"})}
    body = {"template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def cron_job(name: str, run: Body, **spec: Any) -> Body:
    body = {"schedule": "* * * * *", "jobTemplate": {"spec": run["spec"]}, **spec}
    metadata = {"name": name}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": body}


def _pod(more: Body | None) -> Body:
    return {"containers": [{"name": "main", "image": "x", "resources": RESOURCES}], **(more or {})}


PARALLEL: Final = {"podManagementPolicy": "Parallel"}
"""All pods at once: without a kubelet none becomes ready."""

ON_FAILURE: Final = {
    "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
}
EVERYWHERE: Final = {"tolerations": [{"operator": "Exists"}]}
WORKLOADS: Final[Mapping[str, Body]] = {
    one["metadata"]["name"]: one
    for one in (
        set_of("Deployment", "deployment", replicas=3),
        set_of("Deployment", "default-replicas"),
        set_of("Deployment", "no-replicas", replicas=0),
        set_of("Deployment", "paused", paused=True),
        set_of("Deployment", "recreate", strategy={"type": "Recreate"}, replicas=2),
        set_of("ReplicaSet", "replica-set", replicas=2),
        set_of("StatefulSet", "stateful", serviceName="s", replicas=3, **PARALLEL),
        set_of("StatefulSet", "ordered", serviceName="s", replicas=1),
        set_of("StatefulSet", "ordinals", serviceName="s", ordinals={"start": 5}, replicas=2,
               **PARALLEL),
        set_of("StatefulSet", "partition", serviceName="s", replicas=2, **PARALLEL,
               updateStrategy={"rollingUpdate": {"partition": 1}}),
        set_of("DaemonSet", "daemon"),
        set_of("DaemonSet", "daemon-fast", {"nodeSelector": {"pool": "fast"}}),
        set_of("DaemonSet", "daemon-everywhere", EVERYWHERE),
        set_of("DaemonSet", "daemon-host", {"hostNetwork": True}),
        set_of("DaemonSet", "daemon-big", requires(("size", "Gt", ["7"]))),
        set_of("DaemonSet", "daemon-named",
               requires(("metadata.name", "In", ["fast"]), key="matchFields")),
        set_of("DaemonSet", "daemon-tolerates",
               {"tolerations": [{"key": "pool", "operator": "Exists", "effect": "NoSchedule"}]}),
        set_of("DaemonSet", "daemon-execute",
               {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}),
        job("job"),
        job("parallel", parallelism=3),
        job("completions", completions=5),
        job("few-completions", parallelism=4, completions=2),
        job("nothing", parallelism=0),
        job("no-completions", completions=0),
        job("suspended", suspend=True),
        job("indexed", completionMode="Indexed", parallelism=2, completions=4),
        job("policy", podFailurePolicy=ON_FAILURE, backoffLimit=1, parallelism=2),
        job("managed", managedBy="example.com/queue"),
        job("selected", manualSelector=True, selector={"matchLabels": {"app": "selected"}}),
        cron_job("cron", job("run", parallelism=2), concurrencyPolicy="Forbid"),
        cron_job("cron-suspended", job("run"), suspend=True),
        cron_job("cron-of-suspended", job("run", suspend=True)),
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with all controllers, and the nodes and workloads; without a scheduler."""
    found = provide(("kube-controller-manager",))
    programs = {**control_plane.programs, **{name: one.path for name, one in found.items()}}
    *ports, port = choose(4)
    folder = tmp_path_factory.mktemp("workloads")
    made = ControlPlane(folder, ControlPlanePorts(*ports), programs)
    manager = controller_manager(made, port, emulated=False)
    controllers = "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"
    manager = replace(manager, options=(*manager.options, controllers))
    try:
        made.start()
        _create(made, folder, [_node(name) for name in NODES])
        manager.start()
        made.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        _create(made, folder, list(WORKLOADS.values()))
        yield made
    finally:
        if (pid := manager.daemon.pid()) is not None:
            kill(pid)
        made.stop()


def _create(plane: ControlPlane, folder: Path, bodies: list[Body]) -> None:
    file = folder / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
    plane.kubectl("create", "-f", str(file))


def _node(name: str) -> Body:
    labels, spec = NODES[name]
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def test_the_pods_are_those_of_the_controllers(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(plane.kubectl("get", "nodes", "-o", "json"))
    bodies = json.dumps({"kind": "List", "items": list(WORKLOADS.values())})
    (tmp_path / "workloads.json").write_text(bodies)
    files = (tmp_path / f"{one}.json" for one in ("nodes", "workloads"))
    cluster, written = (read_manifests([file]) for file in files)
    foreseen = _by_workload(combined(cluster, written).of("Pod").values())
    found: dict[str, list[PodView]] = {}
    for _ in range(LOOKS):
        listed = json.loads(plane.kubectl("get", "pods", "-o", "json"))["items"]
        found = _by_workload(map(_stored, listed))
        if _numbers(found) == _numbers(foreseen):
            break
        time.sleep(1)
    assert _numbers(found) == _numbers(foreseen)
    assert found == foreseen


def _numbers(pods: Mapping[str, list[PodView]]) -> dict[str, int]:
    return {name: len(listed) for name, listed in pods.items()}


def _stored(body: Json) -> Manifest:
    return Manifest("the API server", "Pod", body, stored=True)


def _by_workload(pods: Iterable[Manifest]) -> dict[str, list[PodView]]:
    """Pods by the value of their label `app`, or of their CronJob's, in their order."""
    named: dict[str, list[PodView]] = {}
    for pod in sorted(map(_read, pods), key=lambda one: (one.name, one.node)):
        named.setdefault(_workload(pod), []).append(pod)
    return named


def _workload(pod: PodView) -> str:
    return "cron" if pod.name.startswith("cron-") else pod.labels["app"]


def _read(pod: Manifest) -> PodView:
    """What numapin reads of a pod, without what is chosen at random."""
    view = parse_pod({**pod.content, "metadata": {"uid": "u", **pod.metadata}})
    random = {key: value for key, value in view.labels.items() if _is_random(key)}
    name = view.name
    for value in random.values():
        name = name.replace(value, "RANDOM")
    if view.origin.kind != "StatefulSet":
        name = name[:-5] + "....."
    labels = dict(view.labels) | dict.fromkeys(random, "RANDOM")
    labels = {key: _without_minute(value) for key, value in labels.items()}
    node = view.node or _node_of_daemon(pod.content["spec"])
    return replace(
        view,
        uid="",
        name=_without_minute(name),
        labels=labels,
        node=node,
        origin=replace(view.origin, uid=""),
        bound="",
        checked=True,
        edited=False,
    )


def _is_random(label: str) -> bool:
    return label.endswith(("-hash", "controller-uid"))


def _without_minute(text: str) -> str:
    """Without the time at which a CronJob ran."""
    return re.sub(r"-\d{8}", "-MINUTE", text)


def _node_of_daemon(spec: Body) -> str:
    """The node for which a DaemonSet's controller has made a pod; empty if it is another pod."""
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for one in term.get("matchFields", ()):
            return str(one["values"][0])
    return ""
