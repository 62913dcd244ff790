"""Which of the manifests the lab installs."""

from typing import Any

import yaml

from numapin_lab.controlplane.installation import MANIFESTS, without_workloads


def test_the_manifests_are_installed_but_for_their_pods() -> None:
    documents: list[dict[str, Any]] = [
        document
        for file in sorted(MANIFESTS.glob("*.yaml"))
        if file.name != "kustomization.yaml"
        for document in yaml.safe_load_all(file.read_text())
    ]
    kept = {document["kind"] for document in without_workloads(documents)}
    assert {document["kind"] for document in documents} - kept == {"Deployment", "DaemonSet"}
    assert {"ServiceAccount", "ClusterRole", "ValidatingAdmissionPolicy"} <= kept
