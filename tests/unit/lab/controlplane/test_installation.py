"""Which of the manifests the lab installs."""

from typing import Any

import yaml

from numapin_lab.controlplane.installation import MANIFESTS, without_workloads


def test_the_manifests_are_installed_but_for_their_pods() -> None:
    listed = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]
    documents: list[dict[str, Any]] = [
        document
        for name in listed
        if (MANIFESTS / name).is_file()
        for document in yaml.safe_load_all((MANIFESTS / name).read_text())
    ]
    kept = {document["kind"] for document in without_workloads(documents)}
    assert {document["kind"] for document in documents} - kept == {"Deployment", "DaemonSet"}
    assert {"ServiceAccount", "ClusterRole", "ValidatingAdmissionPolicy"} <= kept
