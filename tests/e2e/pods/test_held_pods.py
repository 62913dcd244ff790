"""A Deployment that asks for more than the node has, with the real scheduler and kubelet."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_api.forms.spec import read_spec
from numapin_campaigns.laws.assignment import overlaps
from numapin_client.resources import NODE_ASSIGNMENTS, Key
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab, eventually, pod, policy

COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "holding"
OWN = CpuSet.parse("1")
"""The only CPU of the node that a pod can have to itself."""

OPERATOR = f"system:serviceaccount:{names.NAMESPACE}:{names.OPERATOR_SERVICE_ACCOUNT}"
LOOK_SECONDS = 0.01

ONE_RUNS = ["Pending", "Running"]


def deployment(replicas: int) -> dict[str, Any]:
    spec = pod("web", cpu="1")["spec"] | {"restartPolicy": "Always"}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def holding(lab: RunningLab) -> Iterator[RunningLab]:
    """Pods of the default namespace are held."""
    files = [f"--filename={COMPONENT / one}.yaml" for one in ("rbac", "admission", "gate")]
    lab.kubectl("apply", *files)
    lab.kubectl("label", "namespace", "default", f"{names.HOLD_LABEL}={names.HOLD_ENABLED}")
    lab.apply(policy(onUnsatisfiable="Hold"))
    lab.wait_in_force()
    probe = json.dumps(pod("probe"))

    def gates() -> bool:
        answer = lab.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", text=probe)
        return names.HOLD_GATE in str(answer)

    eventually(gates, True)
    try:
        yield lab
    finally:
        lab.kubectl("label", "namespace", "default", f"{names.HOLD_LABEL}-")
        lab.kubectl("delete", "deployment", "web", "--ignore-not-found")
        eventually(lambda: pods(lab), [])
        lab.kubectl("delete", *files)


def pods(lab: RunningLab) -> list[dict[str, Any]]:
    """The pods of the Deployment, the oldest first."""
    listed = lab.cluster.api.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")
    return sorted(listed["items"], key=lambda one: str(one["metadata"]["creationTimestamp"]))


def phases(lab: RunningLab) -> list[str]:
    return sorted(one["status"]["phase"] for one in pods(lab))


def gated(lab: RunningLab) -> list[str]:
    """The names of the pods whose gate is there."""
    return [one["metadata"]["name"] for one in pods(lab) if one["spec"].get("schedulingGates")]


def told(lab: RunningLab, name: str) -> str:
    """What a pod says about why it waits."""
    annotations = lab.pod(name)["metadata"].get("annotations") or {}
    return str(annotations.get(names.HELD_ANNOTATION, ""))


def by_phase(lab: RunningLab, phase: str) -> str:
    """The name of the one pod in this phase."""
    (found,) = (one for one in pods(lab) if one["status"]["phase"] == phase)
    return str(found["metadata"]["name"])


def lines(lab: RunningLab) -> dict[str, str]:
    """The CPUs of each pod in the NodeAssignment; no CPU is there twice."""
    spec = read_spec(lab.cluster.api.get(NODE_ASSIGNMENTS.path(Key(lab.node)))).wire
    assert overlaps(spec) == []
    return {one["pod"]: one["cpus"] for one in spec.get("containers") or ()}


def test_what_does_not_fit_waits_and_goes_when_there_is_room(holding: RunningLab) -> None:
    lab = holding
    lab.apply(deployment(2))
    eventually(lambda: phases(lab), ONE_RUNS)
    running, waiting = by_phase(lab, "Running"), by_phase(lab, "Pending")
    eventually(lambda: lab.allowed(running), OWN)
    eventually(lambda: lab.node in told(lab, waiting), True)
    assert "Held" in {one["reason"] for one in lab.events(waiting)}
    conditions = lab.pod(waiting)["status"]["conditions"]
    assert [one["reason"] for one in conditions] == ["SchedulingGated"]
    assert phases(lab) == ONE_RUNS, "none failed, and none shares"
    assert lines(lab) == {running: str(OWN)}
    print(opened_after(lab, running, waiting))
    eventually(lambda: lab.pod(waiting)["status"]["phase"], "Running")
    eventually(lambda: lab.allowed(waiting), OWN)
    assert told(lab, waiting) == ""
    eventually(lambda: phases(lab), ONE_RUNS)
    assert lines(lab) == {waiting: str(OWN)}, "the pod that replaces the first one waits"


def opened_after(lab: RunningLab, running: str, waiting: str) -> str:
    """End a pod; how long the steps took until the gate of another one was gone."""
    cgroup, path = lab.container(running), f"/api/v1/namespaces/default/pods/{running}"
    seen: dict[str, float] = {}
    began = monotonic()
    lab.cluster.api.request("DELETE", path)
    steps: dict[str, Callable[[], bool]] = {
        "its cgroup was gone": lambda: not cgroup.exists(),
        "its CPU was free": lambda: running not in lines(lab),
        "the other had it": lambda: waiting in lines(lab),
        "the gate was open": lambda: waiting not in gated(lab),
    }
    while len(seen) < len(steps):
        for step, is_done in steps.items():
            if step not in seen and is_done():
                seen[step] = monotonic() - began
        sleep(LOOK_SECONDS)
    shown = ", ".join(f"{step} after {seconds:.2f} s" for step, seconds in seen.items())
    return f"a pod was deleted; {shown}"


def test_an_operator_that_is_killed_at_each_step_loses_nothing(holding: RunningLab) -> None:
    lab = holding
    lab.kill("operator")
    lab.apply(deployment(2))
    eventually(lambda: len(gated(lab)), 2)
    assert lines(lab) == {}
    with pods_unchanged(lab):
        lab.restart("operator")
        eventually(lambda: list(lines(lab).values()), [str(OWN)])
        lab.kill("operator")  # before it opened the gate of the pod that has its place
        reserved = lines(lab)
        assert len(gated(lab)) == 2
    lab.restart("operator")
    eventually(lambda: len(gated(lab)), 1)
    lab.kill("operator")  # the scheduler binds the pod alone
    eventually(lambda: phases(lab), ONE_RUNS)
    running, waiting = by_phase(lab, "Running"), by_phase(lab, "Pending")
    assert reserved == {running: str(OWN)} == lines(lab)
    eventually(lambda: lab.allowed(running), OWN)
    lab.delete("pod", running)
    assert waiting in gated(lab)
    lab.restart("operator")
    eventually(lambda: lab.pod(waiting)["status"]["phase"], "Running")
    eventually(lambda: lab.allowed(waiting), OWN)
    assert lines(lab) == {waiting: str(OWN)}
    assert phases(lab) == ONE_RUNS


@contextmanager
def pods_unchanged(lab: RunningLab) -> Iterator[None]:
    """The operator can change no pod."""
    group, name = "admissionregistration.k8s.io/v1", {"name": "no-change"}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    denies = {
        "matchConstraints": {"resourceRules": [one | {"operations": ["UPDATE"]} for one in rules]},
        "matchConditions": [
            {"name": "who", "expression": f"request.userInfo.username=='{OPERATOR}'"}
        ],
        "validations": [{"expression": "false", "message": "not now"}],
    }
    binding = {"policyName": "no-change", "validationActions": ["Deny"]}
    manifests: list[dict[str, Any]] = [
        {"apiVersion": group, "kind": kind, "metadata": name, "spec": spec}
        for kind, spec in (
            ("ValidatingAdmissionPolicy", denies),
            ("ValidatingAdmissionPolicyBinding", binding),
        )
    ]
    lab.apply(*manifests)
    eventually(lambda: is_denied(lab), True)
    try:
        yield
    finally:
        for one in manifests:
            lab.kubectl("delete", one["kind"], "no-change")


def is_denied(lab: RunningLab) -> bool:
    """Whether the API server refuses what the operator would change."""
    change = ("annotate", "pod", gated(lab)[0], f"{names.HELD_ANNOTATION}=x")
    try:
        lab.kubectl(*change, "--dry-run=server", f"--as={OPERATOR}")
    except LabError as error:
        return "not now" in str(error)
    return False
