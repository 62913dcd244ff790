"""Policies from Git on a real API server: two managers of one policy, and no difference left."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.errors import LabError
from support.values.policy_specs import GOOD_POLICIES

ROOT = Path(__file__).parents[3]
NAME = "managed"
OURS = ("-l", "test=gitops")
NOBODY = {"nodeSelector": {"example.com/gitops": "none"}}
"""So that no policy of this test governs a node of another one."""


def of_nobody(spec: dict[str, Any]) -> dict[str, Any]:
    """A policy that selects no node of another test, by whichever selector it has."""
    if "nodes" in spec:
        return spec | {"nodes": spec["nodes"] | {"matchLabels": NOBODY["nodeSelector"]}}
    return NOBODY | spec


def manifest(spec: dict[str, Any], name: str = NAME) -> dict[str, Any]:
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "CpuPolicy"}
    return {**kind, "metadata": {"name": name, "labels": {"test": "gitops"}}, "spec": spec}


def report(kubectl: Kubectl, name: str) -> None:
    """Write a status, as the operator does."""
    patch = json.dumps({"status": {"observedGeneration": 1, "nodesSelected": 3}})
    who = ("--subresource=status", "--field-manager=numapin-operator")
    kubectl("patch", "cpupol", name, *who, "--type=merge", "-p", patch)


@pytest.fixture
def policies(installed: Kubectl) -> Iterator[Kubectl]:
    yield installed
    installed("delete", "cpupol", *OURS, "--ignore-not-found")


def test_two_managers_share_a_policy(policies: Kubectl) -> None:
    """Each owns the fields that it applies, and may take back those alone."""

    def apply(manager: str, spec: dict[str, Any]) -> dict[str, Any]:
        said = ("--server-side", f"--field-manager={manager}", "-f", "-")
        policies("apply", *said, text=yaml.safe_dump(manifest(spec)))
        stored: dict[str, Any] = policies.get("cpupol", NAME)
        return stored

    one = NOBODY | {
        "reserved": {"count": 2},
        "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    }
    other = {
        "nodeSelector": {"zone": "a"},
        "priority": 5,
        "memory": {"reserved": [{"numaNode": 1, "memory": "2Gi"}]},
    }
    apply("platform", one)
    report(policies, NAME)
    both = apply("team", other)["spec"]
    assert both["nodeSelector"] == {**NOBODY["nodeSelector"], "zone": "a"}
    assert both["priority"] == 5
    assert [each["numaNode"] for each in both["memory"]["reserved"]] == [0, 1]
    with pytest.raises(LabError, match=r'conflict with "platform".*\.spec\.reserved\.count'):
        apply("team", other | {"reserved": {"count": 4}})
    again = apply("platform", one)
    assert again["metadata"]["generation"] == 2, "what was applied again changes nothing"
    assert again["status"]["nodesSelected"] == 3
    left = apply("team", {"priority": 5})["spec"]
    assert left["nodeSelector"] == NOBODY["nodeSelector"]
    assert [each["numaNode"] for each in left["memory"]["reserved"]] == [0]
    assert left["reserved"]["count"] == 2


def test_nothing_differs_after_an_apply(policies: Kubectl) -> None:
    """`kubectl diff` fails if anything does; defaults and statuses are no difference."""
    listed = [
        manifest(of_nobody(spec), f"applied-{number}")
        for number, spec in enumerate(GOOD_POLICIES.values())
    ]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": listed})
    for how in ((), ("--server-side", "--force-conflicts")):
        policies("apply", *how, "-f", "-", text=text)
        report(policies, "applied-0")
        policies("diff", *how, "-f", "-", text=text)
        before = policies.get("cpupol", *OURS)["items"]
        policies("apply", *how, "-f", "-", text=text)
        after = policies.get("cpupol", *OURS)["items"]
        assert [one["metadata"]["generation"] for one in after] == [
            one["metadata"]["generation"] for one in before
        ]


def test_argo_cd_takes_the_health_checks(policies: Kubectl) -> None:
    """The patch that its manifest names, on a ConfigMap that has other settings."""
    policies("create", "namespace", "argocd")
    try:
        own = ("-n", "argocd", "configmap", "argocd-cm")
        policies("create", "configmap", "argocd-cm", "-n", "argocd", "--from-literal=url=kept")
        patch = str(ROOT / "manifests" / "argocd" / "argocd-cm.yaml")
        policies("patch", "-n", "argocd", "configmap", "argocd-cm", "--patch-file", patch)
        data = policies.get(*own)["data"]
        assert data["url"] == "kept"
        assert data["resource.customizations.health.numapin.io_NodeAssignment"].startswith("local")
    finally:
        policies("delete", "namespace", "argocd", "--wait=false")
