"""A pod of a virtual machine with dedicated CPUs, with the real scheduler and kubelet.

KubeVirt is played: it writes Nodes as `HeartBeat.do` of its virt-handler does, and the pod has the
labels, the selector and the containers of virt-launcher, with a shell in place of the machine.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_lab.running_lab import RunningLab, pod, policy
from support.suite.left_out import since_kubernetes

pytestmark = [
    since_kubernetes("1.36"),  # the first with MutatingAdmissionPolicies
    pytest.mark.from_source("the lab's runtime has its NRI socket where no pod is shown it"),
]

COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "kubevirt" / "label.yaml"
LABEL, OPT_IN = "kubevirt.io/cpumanager", "numapin.io/kubevirt"
LAUNCHER = "virt-launcher-guest-abcde"
OWN = CpuSet.parse("1")
"""The only CPU of the node that a pod can have to itself."""


def launcher() -> dict[str, Any]:
    """Requests whole CPUs for the machine and a part of one for its console."""
    made = pod(LAUNCHER, cpu="1", memory="64Mi")
    (compute,) = made["spec"]["containers"]
    amount = {"cpu": "15m", "memory": "32Mi"}
    console = compute | {"resources": {"requests": amount, "limits": amount}}
    made["metadata"]["labels"] = {"kubevirt.io": "virt-launcher"}
    made["spec"]["nodeSelector"] = {LABEL: "true"}
    made["spec"]["containers"] = [
        compute | {"name": "compute"},
        console | {"name": "guest-console-log"},
    ]
    return made


def beat(lab: RunningLab) -> str:
    """One heartbeat of KubeVirt on a node whose kubelet has the policy none; what it leads to."""
    annotations = {"kubevirt.io/heartbeat": datetime.now(UTC).isoformat()}
    patch = {"metadata": {"labels": {LABEL: "false"}, "annotations": annotations}}
    lab.kubectl("patch", "node", lab.node, "--type=merge", "-p", json.dumps(patch))
    node = lab.cluster.api.get(f"/api/v1/nodes/{lab.node}")
    return str(node["metadata"]["labels"][LABEL])


def start_gate(lab: RunningLab) -> dict[str, Any]:
    """What the node reports of it."""
    report = lab.cluster.api.get(f"/apis/numapin.io/v1beta1/nodereports/{lab.node}")
    return dict(report["status"].get("startGate") or {"active": False})


@pytest.fixture
def kubevirt(lab: RunningLab) -> Iterator[RunningLab]:
    """Containers wait for their CPUs, and KubeVirt has said that this node gives none."""
    assert beat(lab) == "false"
    try:
        lab.kubectl("apply", f"--filename={COMPONENT}")
        lab.apply(policy(startGate="Wait"))
        lab.wait_in_force()
        lab.eventually(lambda: start_gate(lab)["active"], True)
        yield lab
    finally:
        lab.kubectl("delete", f"--filename={COMPONENT}")
        lab.kubectl("label", "node", lab.node, f"{OPT_IN}-", f"{LABEL}-")


def test_a_machine_with_dedicated_cpus_is_scheduled_and_pinned_from_its_start(
    kubevirt: RunningLab,
) -> None:
    lab = kubevirt
    lab.apply(launcher())
    lab.eventually(lambda: [one["reason"] for one in lab.events(LAUNCHER)], ["FailedScheduling"])
    assert "didn't match Pod's node affinity/selector" in lab.events(LAUNCHER)[0]["message"]
    lab.kubectl("label", "node", lab.node, f"{OPT_IN}=enabled")
    lab.eventually(lambda: beat(lab), "true")
    lab.wait_running(LAUNCHER)
    lab.wait_in_force()
    assert beat(lab) == "true"
    sets = {lab.kubepods / path: cpus for path, cpus in lab.cpusets().items()}
    assert sets[lab.container(LAUNCHER, "compute")] == OWN
    assert not sets[lab.container(LAUNCHER, "guest-console-log")] & OWN
    assert start_gate(lab)["bornPinned"] == 1
